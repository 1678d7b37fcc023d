// Search parameters of a URL, which may contain any value.

type Search = Record<string, unknown>

/** Returns a text parameter. The router parses numbers and booleans, which are converted back to text. */
export function textIn(search: Search, name: string): string | undefined {
  const value = search[name]
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Returns a parameter as an ISO 8601 time, or undefined if it is not a valid time. */
export function timeIn(search: Search, name: string): string | undefined {
  const atMs = Date.parse(textIn(search, name) ?? '')
  return Number.isNaN(atMs) ? undefined : new Date(atMs).toISOString()
}

/** Returns a parameter if its value is one of `values`. */
export const oneOfIn = <const Value extends string>(
  search: Search,
  name: string,
  values: readonly Value[],
): Value | undefined => values.find((value) => value === search[name])

export type WithoutUndefined<Values> = { [Name in keyof Values]?: Exclude<Values[Name], undefined> }

export const withoutUndefined = <Values extends Record<string, unknown>>(values: Values): WithoutUndefined<Values> =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undefined values are removed
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as WithoutUndefined<Values>

/** Returns a validator of search parameters that accepts these text parameters. */
export const textParams =
  <Name extends string>(...names: Name[]) =>
  (search: Search): { [Each in Name]?: string } =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys are the names
    withoutUndefined(Object.fromEntries(names.map((name) => [name, textIn(search, name)]))) as {
      [Each in Name]?: string
    }
