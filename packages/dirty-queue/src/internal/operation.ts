/** What a column with `CHECK (op IN ('put', 'delete'))` holds. */
export const operation = (value: unknown): "put" | "delete" => (value === "delete" ? "delete" : "put")
