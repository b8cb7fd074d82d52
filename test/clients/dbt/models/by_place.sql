{{ config(materialized='table') }}
select place, count(*) as readings, avg(celsius) as celsius
from {{ ref('readings') }}
group by place
