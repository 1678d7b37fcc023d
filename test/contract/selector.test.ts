import { matchesSelector, parseSelector, SelectorError } from '@platform/contract/selector'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

/** The grammar as one regular expression. Keys and values have at most 63 characters. */
const space = String.raw`[ \t\r\n]*`
const key = '[a-z0-9](?:[a-z0-9._/-]{0,61}[a-z0-9])?'
const value = '(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?'
const set = String.raw`[ \t\r\n]+(?:not)?in${space}\(${space}${value}${space}(?:,${space}${value}${space})*\)`
const requirement = `(?:!${space}${key}|${key}(?:${set}|${space}(?:==|!=|=)${space}${value})?)`
const grammar = new RegExp(`^${space}${requirement}${space}(?:,${space}${requirement}${space})*$`)

function errorOf(text: string): SelectorError | undefined {
  try {
    parseSelector(text)
    return undefined
  } catch (error) {
    if (error instanceof SelectorError) return error
    throw error
  }
}

const words = ['a', 'in', 'notin', 'app.io/x', 'A', 'é', '_', 'a'.repeat(63), 'a'.repeat(64), '\u00a0', '__proto__']
const symbols = ['=', '==', '!=', '!', '(', ')', ',', ',', ' ', ' ', '\t', '\n', '>']

test('accepts exactly the texts of the grammar, and reports a position inside of others', () => {
  const text = fc.array(fc.constantFrom(...words, ...symbols), { maxLength: 12 }).map((parts) => parts.join(''))
  const property = fc.property(text, (selector) => {
    const error = errorOf(selector)
    expect(error === undefined).toBe(grammar.test(selector))
    if (error === undefined) return
    expect(error.position).toBeGreaterThanOrEqual(1)
    expect(error.position).toBeLessThanOrEqual(selector.length + 1)
  })
  fc.assert(property, { numRuns: 5000 })
})

const operators = {
  '=': (actual: string | undefined, [wanted]: string[]) => actual === wanted,
  '==': (actual: string | undefined, [wanted]: string[]) => actual === wanted,
  '!=': (actual: string | undefined, [wanted]: string[]) => actual !== wanted,
  in: (actual: string | undefined, wanted: string[]) => actual !== undefined && wanted.includes(actual),
  notin: (actual: string | undefined, wanted: string[]) => actual === undefined || !wanted.includes(actual),
  exists: (actual: string | undefined) => actual !== undefined,
  '!': (actual: string | undefined) => actual === undefined,
}
type Operator = keyof typeof operators
const labelKey = fc.constantFrom('env', 'tier', 'in', 'constructor', 'platform/os')
const labelValue = fc.constantFrom('', 'prod', 'Prod', 'in', '1.0')

function textOf([name, operator, values]: [string, Operator, string[]], gap: string): string {
  if (operator === 'exists') return name
  if (operator === '!') return `!${gap}${name}`
  if (operator === 'in' || operator === 'notin') return `${name} ${operator}${gap}(${values.join(`${gap},`)})`
  return `${name}${gap}${operator}${gap}${values[0]}`
}

test('selects the labels that satisfy every requirement', () => {
  const requirement = fc.tuple(
    labelKey,
    fc.constantFrom(...Object.keys(operators).map((name) => name as Operator)),
    fc.array(labelValue, { minLength: 1, maxLength: 3 }),
  )
  const property = fc.property(
    fc.array(requirement, { minLength: 1, maxLength: 20 }),
    fc.dictionary(labelKey, labelValue),
    fc.constantFrom('', ' ', '\t '),
    (requirements, labels, gap) => {
      const selector = requirements.map((each) => textOf(each, gap)).join(`${gap},${gap}`)
      const actual = (name: string) => (Object.hasOwn(labels, name) ? labels[name] : undefined)
      const expected = requirements.every(([name, operator, values]) => operators[operator](actual(name), values))
      expect(matchesSelector(parseSelector(selector), labels)).toBe(expected)
    },
  )
  fc.assert(property, { numRuns: 2000 })
})

test.each([
  ['', 1],
  ['  ', 1],
  ['env prod', 5],
  ['env=prod,', 10],
  ['env=prod,,a', 10],
  ['Env=prod', 1],
  ['env=pr$d', 5],
  ['env=-x', 5],
  ['tier in web', 9],
  ['tier in (web', 13],
  ['tier in (web api)', 14],
  ['a>1', 1],
  ['a=b)', 4],
  ['!a=b', 3],
  [Array.from({ length: 21 }, () => 'a').join(), 41],
  ['a'.repeat(1001), 1001],
])('rejects %j at character %i', (text, position) => {
  expect(errorOf(text)?.position).toBe(position)
})
