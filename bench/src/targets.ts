/** What the figures have to reach, as ratios to their rivals; `npm run bench -- NAME --check` compares. */
export interface Target {
  readonly bench: string
  readonly case: string
  readonly rival: string
  readonly atLeast: number
}

export const targets: ReadonlyArray<Target> = [
  { bench: "durable", case: "write-c1", rival: "with-transaction", atLeast: 0.95 },
  { bench: "durable", case: "write-c1-p99", rival: "with-transaction", atLeast: 1 / 1.1 },
  { bench: "durable", case: "write-c64", rival: "with-transaction", atLeast: 8 },
  { bench: "durable", case: "write-c64", rival: "raw-64", atLeast: 0.45 },
  { bench: "durable", case: "write-c64-failing", rival: "with-transaction", atLeast: 7 },
  { bench: "dirty-queue", case: "end-to-end", rival: "plainjob", atLeast: 5 },
  { bench: "dirty-queue", case: "end-to-end-normal", rival: "plainjob", atLeast: 5 },
  { bench: "dirty-queue", case: "ack", rival: "raw-batch", atLeast: 0.5 },
  { bench: "dirty-queue", case: "ack", rival: "raw-each", atLeast: 0.5 },
  { bench: "dirty-queue", case: "ack-full", rival: "raw-batch", atLeast: 0.5 },
  { bench: "dirty-queue", case: "ack-full", rival: "raw-each", atLeast: 0.5 },
  // Draining what was written 100 times may take 1.2 times what was written once takes.
  { bench: "dirty-queue", case: "coalesce", rival: "once", atLeast: 1 / 1.2 },
  { bench: "dirty-queue", case: "claim-1m", rival: "claim-1k", atLeast: 1 / 2 },
  { bench: "dirty-queue", case: "claim-1m-unanalyzed", rival: "claim-1k", atLeast: 1 / 2 },
  // A row may cost 1.3 times as much with 1,000,000 rows as with 10,000.
  ...["record-ordered", "claim-ordered", "claim-random", "ack-ordered", "append", "get", "put"].map((name) => ({
    bench: "growth",
    case: name,
    rival: "rows-10k",
    atLeast: 1 / 1.3
  })),
  ...["end-to-end", "end-to-end-w1"].flatMap((name) => [
    { bench: "queue-pg", case: name, rival: "graphile-worker", atLeast: 1 },
    { bench: "queue-pg", case: name, rival: "pg-boss", atLeast: 2 }
  ]),
  { bench: "journal", case: "fold", rival: "wanted", atLeast: 1 },
  { bench: "cache", case: "local-hit", rival: "sql-read", atLeast: 1 / 3 },
  // A tier that never answers may cost a commit no more than 5 % beside one that answers at once.
  { bench: "cache", case: "commit-p99-black-hole", rival: "instant-tier", atLeast: 1 / 1.05 },
  { bench: "cache", case: "commit-p50", rival: "no-tier", atLeast: 1 / 1.35 },
  { bench: "workflow", case: "c64", rival: "memory", atLeast: 0.4 },
  { bench: "workflow", case: "c64", rival: "cluster-sqlite", atLeast: 10 },
  { bench: "workflow", case: "c64", rival: "dbos", atLeast: 5 },
  { bench: "index", case: "first", rival: "raw-fts5", atLeast: 0.75 },
  { bench: "index", case: "unchanged", rival: "lstat", atLeast: 1 / 2 },
  { bench: "cli", case: "search-process", rival: "node-startup", atLeast: 1 / 8 }
]
