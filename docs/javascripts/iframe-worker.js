// Search without a server: browsers start no worker from a file, so a hidden frame does its work.
// The theme looks for IFrameWorker by name. Nothing is fetched from other hosts.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      const page = this.inside.document;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...urls) =>
        urls.reduce((before, one) => before.then(() => load(page, one)), Promise.resolve());
      this.ready = load(page, url);
      this.ready.catch((error) => this.dispatchEvent(new ErrorEvent("error", { error })));
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;

  function load(page, url) {
    return new Promise((resolve, reject) => {
      const script = page.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot read ${url}`));
      page.body.append(script);
    });
  }
}
