(function () {
  "use strict";
  var root = document.documentElement;
  var tip = document.getElementById("tip");
  root.classList.add("js");

  function all(selector, within) {
    return Array.prototype.slice.call((within || document).querySelectorAll(selector));
  }

  function visible(node) {
    return node.getClientRects().length > 0;
  }

  /* what a point says, beside it: in place of the browser's own titles */
  function show(point) {
    var box = point.getBoundingClientRect();
    tip.textContent = point.getAttribute("data-tip");
    tip.hidden = false;
    var wide = root.clientWidth;
    var left = box.left + box.width / 2 - tip.offsetWidth / 2;
    left = Math.max(8, Math.min(left, wide - tip.offsetWidth - 8));
    var top = box.top - tip.offsetHeight - 8;
    if (top < 8) { top = box.bottom + 8; }
    tip.style.left = left + window.scrollX + "px";
    tip.style.top = top + window.scrollY + "px";
  }

  function hide() {
    tip.hidden = true;
  }

  all(".point").forEach(function (point) {
    var title = point.querySelector("title");
    if (title) {
      point.setAttribute("data-tip", title.textContent);
      point.removeChild(title);
    }
    point.addEventListener("pointerenter", function () { show(point); });
    point.addEventListener("pointerleave", hide);
    point.addEventListener("focus", function () { show(point); });
    point.addEventListener("blur", hide);
    point.addEventListener("click", function () { show(point); });
  });

  /* one stop of the Tab key for each series; arrows walk along it and from one to the next */
  all(".chart .series").forEach(function (series) {
    all(".point", series).forEach(function (point, i) {
      point.setAttribute("tabindex", i ? "-1" : "0");
    });
  });

  function walk(point, key) {
    var series = point.closest(".series");
    var points = all(".point", series);
    var at = points.indexOf(point);
    var steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: points.length - 1 };
    if (key in steps) {
      return points[Math.max(0, Math.min(points.length - 1, steps[key]))];
    }
    var others = all(".series", series.closest("svg")).filter(visible);
    var next = others.indexOf(series) + (key === "ArrowUp" ? 1 : -1);
    var there = others[(next + others.length) % others.length];
    var found = all(".point", there);
    return found[Math.min(at, found.length - 1)];
  }

  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { hide(); }
    var point = event.target.closest ? event.target.closest(".point") : null;
    var keys = ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"];
    if (!point || keys.indexOf(event.key) < 0) { return; }
    var next = walk(point, event.key);
    if (!next) { return; }
    event.preventDefault();
    all(".point", next.closest(".series")).forEach(function (other) {
      other.setAttribute("tabindex", other === next ? "0" : "-1");
    });
    next.focus();
  });

  all("[data-show]").forEach(function (button) {
    button.addEventListener("click", function () {
      var every = button.getAttribute("data-show") === "all";
      all(".toggle input").forEach(function (box) {
        box.checked = every || box.defaultChecked;
      });
    });
  });

  all("[data-copy]").forEach(function (button) {
    button.addEventListener("click", function () {
      var code = document.getElementById(button.getAttribute("data-copy"));
      var done = function () {
        button.textContent = "Copied";
        setTimeout(function () { button.textContent = "Copy"; }, 1500);
      };
      var select = function () {
        var folded = code.closest("details");
        if (folded) { folded.open = true; }
        var range = document.createRange();
        range.selectNodeContents(code);
        var selection = window.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        button.textContent = "Selected";
      };
      if (navigator.clipboard && navigator.clipboard.writeText) {
        navigator.clipboard.writeText(code.textContent).then(done, select);
      } else {
        select();
      }
    });
  });
})();
