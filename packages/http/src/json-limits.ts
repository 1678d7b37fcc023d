import type { ErrorDetail } from '@platform/contract/common'
import { jsonPointer } from '@platform/core/lib/validate'

/** Free-form JSON may be 16 deep (D35); it stands at most four below the body itself. */
const maximumDepth = 20
const maximumDetails = 50

type Problem = Pick<ErrorDetail, 'code' | 'message'>

const notUnicode = { code: 'invalid_unicode', message: 'must not hold lone surrogates' }
const notPortable = { code: 'unsafe_number', message: 'must be finite, and within ±(2^53 - 1) where it is whole' }
const tooDeep = { code: 'too_deep', message: `must not be nested more than ${maximumDepth} deep` }
const reservedName = { code: 'reserved_key', message: 'this name is reserved' }

/**
 * What no body may hold anywhere, because a store or another reader would change it or refuse it: numbers that a
 * double cannot carry, text that is not Unicode, deep nesting, a name that is a trap in JavaScript.
 */
export function jsonLimitErrors(body: object): ErrorDetail[] {
  const details: ErrorDetail[] = []
  visitMembers(body, [], details)
  return details
}

type Path = (string | number)[]

// A body may hold a million members: the common ones, numbers and short texts, must cost next to nothing.
function visitMembers(container: object, path: Path, details: ErrorDetail[]): void {
  if (Array.isArray(container)) {
    for (let index = 0; index < container.length; index++) visit(index, container[index], path, details)
    return
  }
  for (const [name, member] of Object.entries(container)) {
    const problem = problemOfName(name)
    if (problem) report(problem, [...path, name], details)
    else visit(name, member, path, details)
  }
}

function visit(name: string | number, value: unknown, path: Path, details: ErrorDetail[]): void {
  const problem = problemOf(value, path.length + 1)
  if (problem) {
    report(problem, [...path, name], details)
  } else if (typeof value === 'object' && value !== null) {
    path.push(name)
    visitMembers(value, path, details)
    path.pop()
  }
}

function report(problem: Problem, path: Path, details: ErrorDetail[]): void {
  if (details.length < maximumDetails) details.push({ in: 'body', path: jsonPointer(path).toWellFormed(), ...problem })
}

function problemOf(value: unknown, depth: number): Problem | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : notUnicode
  if (typeof value === 'number') return isPortable(value) ? undefined : notPortable
  if (typeof value === 'object' && value !== null && depth >= maximumDepth) return tooDeep
  return undefined
}

function problemOfName(name: string): Problem | undefined {
  if (name === '__proto__') return reservedName
  return name.isWellFormed() ? undefined : notUnicode
}

const isPortable = (value: number): boolean =>
  Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
