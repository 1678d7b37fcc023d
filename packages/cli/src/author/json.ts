import { readFile } from 'node:fs/promises'

/** JSON of others that may be missing, or be something else: then it says nothing. */
export async function readJson(file: string): Promise<unknown> {
  return parseJson(await readFile(file, 'utf8').catch(() => ''))
}

/** Text as JSON; undefined where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What stands in JSON under a path of names; undefined where there is nothing. */
export const memberOf = (value: unknown, ...names: readonly string[]): unknown =>
  names.reduce<unknown>(
    (each, name) =>
      typeof each === 'object' && each !== null && Object.hasOwn(each, name) ? Reflect.get(each, name) : undefined,
    value,
  )
