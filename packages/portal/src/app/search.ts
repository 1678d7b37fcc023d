/** What stands behind the `?` of an address may be anything: these take of it what fits, and forget the rest. */

type Search = Record<string, unknown>

/** A text, where it is one. Numbers and the like were made of texts by the router. */
export function textIn(search: Search, name: string): string | undefined {
  const value = search[name]
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** One of a list of words, where it is one. */
export const oneOfIn = <const Word extends string>(
  search: Search,
  name: string,
  words: readonly Word[],
): Word | undefined => words.find((word) => word === search[name])

/** Values without those members that are not there. */
export type Defined<Values> = { [Name in keyof Values]?: Exclude<Values[Name], undefined> }

/** The members that are there. */
export const defined = <Values extends Record<string, unknown>>(values: Values): Defined<Values> =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of those left none is undefined
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<Values>
