import { readFile } from 'node:fs/promises'

/** Reads a JSON file. Returns undefined if the file cannot be read or is not valid JSON. */
export async function readJson(file: string): Promise<unknown> {
  return parseJson(await readFile(file, 'utf8').catch(() => ''))
}

/** Parses JSON. Returns undefined if the text is invalid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the value at a path of member names, or undefined if a member is missing. */
export const memberOf = (value: unknown, ...names: readonly string[]): unknown =>
  names.reduce<unknown>(
    (each, name) =>
      typeof each === 'object' && each !== null && Object.hasOwn(each, name) ? Reflect.get(each, name) : undefined,
    value,
  )
