import { serviceError } from './errors.ts'
import type { Input } from './types.ts'

/** Throws `SerializationException` for a body that is not a JSON object. */
export function parseObject(body: string): Input {
  try {
    const input: unknown = JSON.parse(body)
    if (isObject(input)) return input
  } catch {
    // Rejected below, like any other body that is not an object.
  }
  throw serviceError('SerializationException')
}

export function isObject(value: unknown): value is Input {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
