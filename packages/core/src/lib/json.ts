import * as z from 'zod'

/** A value that is stored as its JSON: what is free-form, or never read but whole. */
export const jsonString = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(schema)
