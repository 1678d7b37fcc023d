import * as z from 'zod'

/** A value that is stored as its JSON: free-form, or read whole only (house rule 13). */
export const jsonText = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(schema)
