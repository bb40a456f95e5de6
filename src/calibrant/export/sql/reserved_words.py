"""Words that are no names unless they are quoted."""

from __future__ import annotations

#: reserved by at least one database; where a word is not reserved, quotes do no harm
_ANY = """
accessible add all alter analyse analyze and anti any array as asc assert_rows_modified
asymmetric at authorization backup before begin between bigint binary blob both break browse
bulk by call cascade case cast change char character check checkpoint close cluster clustered
coalesce collate collation column commit compute concurrently condition connect constraint
contains containstable continue convert create cross cube cume_dist current current_catalog
current_date current_role current_schema current_time current_timestamp current_user cursor
database databases day_hour day_microsecond day_minute day_second dbcc deallocate dec decimal
declare default deferrable define delayed delete dense_rank deny desc describe deterministic
disk distinct distinctrow distributed div do double drop dual dump each else elseif empty
enclosed end enum errlvl escape escaped except exclude exec execute exists exit explain external
extract false fetch file fillfactor first_value float float4 float8 following for force foreign
freetext freetexttable freeze from full fulltext function generated get goto grant group
grouping groups hash having high_priority holdlock hour_microsecond hour_minute hour_second
identity identity_insert identitycol if ignore ilike in index infile initially inner inout
insensitive insert int int1 int2 int3 int4 int8 integer intersect interval into is isnull
iterate join json_table key keys kill lag lambda last_value lateral lead leading leave left like
limit linear lineno lines load local localtime localtimestamp lock long longblob longtext
lookup loop low_priority match maxvalue mediumblob mediumint mediumtext merge
minute_microsecond minute_second minus mod modifies national natural new no nocheck
nonclustered not notnull nth_value ntile null nullif nulls numeric of off offset offsets on only
open opendatasource openquery openrowset openxml optimize option optionally or order out outer
outfile over overlaps partition percent percent_rank pivot placing plan preceding precision
primary print proc procedure proto public purge qualify raiserror range rank read reads
readtext real reconfigure recursive references regexp release rename repeat replace replication
require resignal respect restore restrict return returning revert revoke right rlike rollback
rollup row row_number rowcount rowguidcol rows rule save schema schemas second_microsecond
securityaudit select semi semantickeyphrasetable sensitive separator session_user set setuser
show shutdown signal similar smallint some spatial specific sql sqlexception sqlstate
sqlwarning ssl starting statistics stored straight_join struct summarize symmetric system
system_user table tablesample terminated textsize then tinyblob tinyint tinytext to top
trailing tran transaction treat trigger true truncate try_convert tsequal unbounded undo union
unique unlock unnest unpivot unsigned update updatetext usage use user using utc_date utc_time
utc_timestamp values varbinary varchar varcharacter variadic varying verbose view virtual
waitfor when where while window with within write writetext xor year_month zerofill
"""

#: where quotes change which name is meant, only what must be quoted is
_SNOWFLAKE = """
account all alter and any as between by case cast check column connect connection constraint
create cross current current_date current_time current_timestamp current_user database delete
distinct drop else exists false following for from full grant group gscluster having ilike in
increment inner insert intersect into is issue join lateral left like localtime localtimestamp
minus natural not null of on or order organization qualify regexp revoke right rlike row rows
sample schema select set some start table tablesample then to trigger true try_cast union
unique update using values view when whenever where with
"""

RESERVED, SNOWFLAKE = frozenset(_ANY.split()), frozenset(_SNOWFLAKE.split())
