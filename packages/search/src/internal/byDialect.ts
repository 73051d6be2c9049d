import type * as SqlClient from "effect/sql/SqlClient"

/** The storage that fits a client. */
export const byDialect = <A>(
  sql: SqlClient.SqlClient,
  storages: {
    readonly postgres: (sql: SqlClient.SqlClient) => A
    readonly sqlite: (sql: SqlClient.SqlClient) => A
  }
): A => sql.onDialectOrElse({ pg: () => storages.postgres(sql), orElse: () => storages.sqlite(sql) })
