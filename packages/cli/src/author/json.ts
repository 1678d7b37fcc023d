import { readFile } from 'node:fs/promises'

/** Reads a JSON file of another program; undefined if it is missing or invalid. */
export async function readJson(file: string): Promise<unknown> {
  return parseJson(await readFile(file, 'utf8').catch(() => ''))
}

/** Undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The value at a path of names; undefined if it is missing. */
export const memberOf = (value: unknown, ...names: readonly string[]): unknown =>
  names.reduce<unknown>(
    (each, name) =>
      typeof each === 'object' && each !== null && Object.hasOwn(each, name) ? Reflect.get(each, name) : undefined,
    value,
  )
