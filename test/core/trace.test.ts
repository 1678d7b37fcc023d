import { expect, test } from 'vitest'
import { newTraceId, traceIdOf } from '@platform/core/lib/trace'

test('a trace that a request names goes on', () => {
  expect(traceIdOf('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')).toBe('0af7651916cd43dd8448eb211c80319c')
})

test('a request that names none, or none that may be, begins one of 32 hex digits', () => {
  const zeros = `00-${'0'.repeat(32)}-b7ad6b7169203331-01`
  for (const header of [undefined, '', 'nonsense', zeros]) expect(traceIdOf(header)).toMatch(/^(?!0{32})[0-9a-f]{32}$/)
})

test('no two fresh traces are alike', () => {
  expect(new Set(Array.from({ length: 1000 }, newTraceId)).size).toBe(1000)
})
