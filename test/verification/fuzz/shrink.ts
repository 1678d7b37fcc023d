import { parseJson } from '../../conformance/support/answer.ts'
import type { Wire } from './request.ts'

/** Requests that say less than another one. */
function smallerThan(wire: Wire): Wire[] {
  const { body, query, headers } = wire
  const withoutHeaders = Object.keys(headers).map((name) => ({
    ...wire,
    headers: Object.fromEntries(Object.entries(headers).filter(([other]) => other !== name)),
  }))
  const withoutQuery = query === '' ? [] : [{ ...wire, query: '' }]
  const value = typeof body === 'string' ? parseJson(body) : undefined
  const bodies = typeof value === 'object' && value !== null ? smallerValues(value) : []
  return [...withoutQuery, ...withoutHeaders, ...bodies.map((smaller) => ({ ...wire, body: JSON.stringify(smaller) }))]
}

/** Values with one member less, or with a shorter text or list in one place. */
function smallerValues(value: unknown): unknown[] {
  if (typeof value === 'string') return value.length > 1 ? [value.slice(0, value.length / 2)] : []
  if (Array.isArray(value)) {
    const items = value
      .slice(0, 5)
      .flatMap((item, index) => smallerValues(item).map((other) => value.with(index, other)))
    return value.length === 0 ? [] : [value.slice(0, value.length / 2), ...items]
  }
  if (typeof value !== 'object' || value === null) return []
  const members = Object.entries(value)
  const without = members.map(([name]) => Object.fromEntries(members.filter(([other]) => other !== name)))
  const inside = members.flatMap(([name, member]) =>
    smallerValues(member).map((other) =>
      Object.fromEntries(members.map((pair) => (pair[0] === name ? [name, other] : pair))),
    ),
  )
  return [...without, ...inside]
}

/** How many smaller requests are tried, at most. */
const patience = 200

/** The smallest request that still fails, as far as it is found. */
export async function shrunk(wire: Wire, fails: (smaller: Wire) => Promise<boolean>): Promise<Wire> {
  let [smallest, tries] = [wire, 0]
  for (let isSmaller = true; isSmaller;) {
    isSmaller = false
    for (const candidate of smallerThan(smallest)) {
      if (tries++ >= patience) return smallest
      if (!(await fails(candidate))) continue
      ;[smallest, isSmaller] = [candidate, true]
      break
    }
  }
  return smallest
}
