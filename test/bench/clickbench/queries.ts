/**
 * ClickBench's 43 queries, in the dialect that Tidemark and QuestDB share and in DuckDB's.
 *
 * The original has 100 M rows. Constants that depend on this number (minimum group size, page
 * offset) are scaled to the number of generated rows, so no answer is empty. An empty string is
 * null in all databases compared, because that is how QuestDB imports it.
 */
import { NAMED } from './columns.js';

export interface Query {
  /** `q1` to `q43`, in the benchmark's order. */
  readonly id: string;
  readonly text: string;
  readonly duckdb: string;
  /** Answer columns that ORDER BY sorts on; rows with equal values may be in any order. */
  readonly order: readonly number[];
}

interface Written {
  readonly text: string;
  /** Set only if the DuckDB query cannot be derived from `text`. */
  readonly duckdb?: string;
  readonly order?: readonly number[];
  /** OFFSET in the original; the LIMIT is ten rows. */
  readonly skipped?: number;
}

const ORIGINAL_ROWS = 100_000_000;
const PAGE_ROWS = 10;
const ADDED = Array.from({ length: 90 }, (_, added) =>
  added === 0 ? 'SUM(ResolutionWidth)' : `SUM(ResolutionWidth + ${added})`,
);
const JULY = "EventTime >= '2013-07-01T00:00:00Z' AND EventTime <= '2013-07-31T23:59:59Z'";
const SITE = `CounterID = ${NAMED.counter} AND ${JULY}`;
const TOP = 'ORDER BY c DESC LIMIT 10';
const TOP_USERS = 'ORDER BY u DESC LIMIT 10';
const VIEWS = 'COUNT(*) AS PageViews FROM hits';

function written(leastRows: number): readonly Written[] {
  const named = 'SearchPhrase IS NOT NULL';
  const site = String.raw`'^https?://(?:www\.)?([^/]+)/.*$', `;
  return [
    { text: 'SELECT COUNT(*) FROM hits' },
    { text: 'SELECT COUNT(*) FROM hits WHERE AdvEngineID <> 0' },
    { text: 'SELECT SUM(AdvEngineID), COUNT(*), AVG(ResolutionWidth) FROM hits' },
    { text: 'SELECT AVG(UserID) FROM hits' },
    { text: 'SELECT count_distinct(UserID) FROM hits' },
    { text: 'SELECT count_distinct(SearchPhrase) FROM hits' },
    { text: 'SELECT MIN(EventTime), MAX(EventTime) FROM hits' },
    {
      text: `SELECT AdvEngineID, COUNT(*) AS c FROM hits WHERE AdvEngineID <> 0
        GROUP BY AdvEngineID ORDER BY c DESC`,
      order: [1],
    },
    {
      text: `SELECT RegionID, count_distinct(UserID) AS u FROM hits GROUP BY RegionID ${TOP_USERS}`,
      order: [1],
    },
    {
      text: `SELECT RegionID, SUM(AdvEngineID), COUNT(*) AS c, AVG(ResolutionWidth),
        count_distinct(UserID) FROM hits GROUP BY RegionID ${TOP}`,
      order: [2],
    },
    {
      text: `SELECT MobilePhoneModel, count_distinct(UserID) AS u FROM hits
        WHERE MobilePhoneModel IS NOT NULL GROUP BY MobilePhoneModel ${TOP_USERS}`,
      order: [1],
    },
    {
      text: `SELECT MobilePhone, MobilePhoneModel, count_distinct(UserID) AS u FROM hits
        WHERE MobilePhoneModel IS NOT NULL GROUP BY MobilePhone, MobilePhoneModel ${TOP_USERS}`,
      order: [2],
    },
    {
      text: `SELECT SearchPhrase, COUNT(*) AS c FROM hits WHERE ${named} GROUP BY SearchPhrase ${TOP}`,
      order: [1],
    },
    {
      text: `SELECT SearchPhrase, count_distinct(UserID) AS u FROM hits WHERE ${named}
        GROUP BY SearchPhrase ${TOP_USERS}`,
      order: [1],
    },
    {
      text: `SELECT SearchEngineID, SearchPhrase, COUNT(*) AS c FROM hits WHERE ${named}
        GROUP BY SearchEngineID, SearchPhrase ${TOP}`,
      order: [2],
    },
    { text: `SELECT UserID, COUNT(*) AS c FROM hits GROUP BY UserID ${TOP}`, order: [1] },
    {
      text: `SELECT UserID, SearchPhrase, COUNT(*) AS c FROM hits GROUP BY UserID, SearchPhrase ${TOP}`,
      order: [2],
    },
    {
      text: 'SELECT UserID, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, SearchPhrase LIMIT 10',
    },
    {
      text: `SELECT UserID, extract(minute FROM EventTime) AS m, SearchPhrase, COUNT(*) AS c
        FROM hits GROUP BY UserID, m, SearchPhrase ${TOP}`,
      order: [3],
    },
    { text: `SELECT UserID FROM hits WHERE UserID = ${NAMED.userId}` },
    { text: "SELECT COUNT(*) FROM hits WHERE URL LIKE '%google%'" },
    {
      text: `SELECT SearchPhrase, MIN(URL), COUNT(*) AS c FROM hits
        WHERE URL LIKE '%google%' AND ${named} GROUP BY SearchPhrase ${TOP}`,
      order: [2],
    },
    {
      text: `SELECT SearchPhrase, MIN(URL), MIN(Title), COUNT(*) AS c, count_distinct(UserID)
        FROM hits WHERE Title LIKE '%Google%' AND URL NOT LIKE '%.google.%' AND ${named}
        GROUP BY SearchPhrase ${TOP}`,
      order: [3],
    },
    { text: "SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime LIMIT 10", order: [4] },
    { text: `SELECT SearchPhrase FROM hits WHERE ${named} ORDER BY EventTime LIMIT 10` },
    {
      text: `SELECT SearchPhrase FROM hits WHERE ${named} ORDER BY SearchPhrase LIMIT 10`,
      order: [0],
    },
    { text: `SELECT SearchPhrase FROM hits WHERE ${named} ORDER BY EventTime, SearchPhrase LIMIT 10` },
    {
      text: `SELECT * FROM (SELECT CounterID, AVG(length_bytes(URL)) AS l, COUNT(*) AS c FROM hits
        WHERE URL IS NOT NULL GROUP BY CounterID) WHERE c > ${leastRows} ORDER BY l DESC LIMIT 25`,
      order: [1],
    },
    {
      text: `SELECT * FROM (SELECT REGEXP_REPLACE(Referer, ${site}'$1') AS k,
        AVG(length_bytes(Referer)) AS l, COUNT(*) AS c, MIN(Referer) FROM hits
        WHERE Referer IS NOT NULL GROUP BY k) WHERE c > ${leastRows} ORDER BY l DESC LIMIT 25`,
      order: [1],
    },
    { text: `SELECT ${ADDED.join(', ')} FROM hits` },
    {
      text: `SELECT SearchEngineID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth)
        FROM hits WHERE ${named} GROUP BY SearchEngineID, ClientIP ${TOP}`,
      order: [2],
    },
    {
      text: `SELECT WatchID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth)
        FROM hits WHERE ${named} GROUP BY WatchID, ClientIP ${TOP}`,
      order: [2],
    },
    {
      text: `SELECT WatchID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth)
        FROM hits GROUP BY WatchID, ClientIP ${TOP}`,
      order: [2],
    },
    { text: `SELECT URL, COUNT(*) AS c FROM hits GROUP BY URL ${TOP}`, order: [1] },
    { text: `SELECT 1, URL, COUNT(*) AS c FROM hits GROUP BY 1, URL ${TOP}`, order: [2] },
    {
      text: `SELECT ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3, COUNT(*) AS c FROM hits
        GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3 ${TOP}`,
      order: [4],
    },
    {
      text: `SELECT URL, ${VIEWS} WHERE ${SITE} AND DontCountHits = 0 AND IsRefresh = 0
        AND URL IS NOT NULL GROUP BY URL ORDER BY PageViews DESC LIMIT 10`,
      order: [1],
    },
    {
      text: `SELECT Title, ${VIEWS} WHERE ${SITE} AND DontCountHits = 0 AND IsRefresh = 0
        AND Title IS NOT NULL GROUP BY Title ORDER BY PageViews DESC LIMIT 10`,
      order: [1],
    },
    {
      text: `SELECT URL, ${VIEWS} WHERE ${SITE} AND IsRefresh = 0 AND IsLink <> 0
        AND IsDownload = 0 GROUP BY URL ORDER BY PageViews DESC`,
      skipped: 1_000,
      order: [1],
    },
    {
      text: `SELECT TraficSourceID, SearchEngineID, AdvEngineID,
        CASE WHEN (SearchEngineID = 0 AND AdvEngineID = 0) THEN Referer ELSE NULL END AS Src,
        URL AS Dst, ${VIEWS} WHERE ${SITE} AND IsRefresh = 0
        GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, Src, Dst ORDER BY PageViews DESC`,
      skipped: 1_000,
      order: [5],
    },
    {
      text: `SELECT URLHash, EventTime, ${VIEWS} WHERE ${SITE} AND IsRefresh = 0
        AND TraficSourceID IN (-1, 6) AND RefererHash = ${NAMED.refererHash}
        GROUP BY URLHash, EventTime ORDER BY PageViews DESC`,
      skipped: 100,
      order: [2],
    },
    {
      text: `SELECT WindowClientWidth, WindowClientHeight, ${VIEWS} WHERE ${SITE} AND IsRefresh = 0
        AND DontCountHits = 0 AND URLHash = ${NAMED.urlHash}
        GROUP BY WindowClientWidth, WindowClientHeight ORDER BY PageViews DESC`,
      skipped: 10_000,
      order: [2],
    },
    {
      text: `SELECT EventTime AS M, ${VIEWS} WHERE ${MINUTES}
        SAMPLE BY 1m ALIGN TO CALENDAR ORDER BY M`,
      duckdb: `SELECT date_trunc('minute', EventTime) AS M, ${VIEWS} WHERE ${MINUTES}
        GROUP BY M ORDER BY M`,
      skipped: 1_000,
      order: [0],
    },
  ];
}

const MINUTES = `CounterID = ${NAMED.counter} AND EventTime >= '2013-07-14T00:00:00Z'
  AND EventTime <= '2013-07-15T23:59:59Z' AND IsRefresh = 0 AND DontCountHits = 0`;

/** Returns the 43 queries for a table with `rows` rows. */
export function queriesFor(rows: number): readonly Query[] {
  const fraction = rows / ORIGINAL_ROWS;
  return written(Math.floor(100_000 * fraction)).map((one, index) => {
    const [text, duckdb] = [one.text, one.duckdb ?? inDuckdb(one.text)];
    const first = one.skipped === undefined ? undefined : Math.floor(one.skipped * fraction);
    return {
      id: `q${index + 1}`,
      text: onOneLine(first === undefined ? text : `${text} LIMIT ${first}, ${first + PAGE_ROWS}`),
      duckdb: onOneLine(
        first === undefined ? duckdb : `${duckdb} LIMIT ${PAGE_ROWS} OFFSET ${first}`,
      ),
      order: one.order ?? [],
    };
  });
}

function inDuckdb(text: string): string {
  return text
    .replaceAll(/count_distinct\((\w+)\)/g, 'COUNT(DISTINCT $1)')
    .replaceAll('length_bytes(', 'strlen(')
    .replace("'$1')", String.raw`'\1')`);
}

function onOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
