import { expect, test } from 'vitest'
import { coldColumns, coldTitle } from '../../bench/cold/table.ts'
import { throughputColumns, throughputTitle } from '../../bench/one-machine/throughput-table.ts'
import { peersColumns, peersTitle, shareTitle } from '../../bench/operations/peers-table.ts'
import { benchTable, measuredOn } from '../../scripts/bench-rows.ts'

const sides = ['floor', 'platform', 'fastify', 'express', 'nest']
const programs = ['floor: get-cluster + sqs', 'clusters', 'peer: fastify', 'peer: express', 'peer: nest']

/** A row whose cells behind its names say which column and row they are. */
const row = (columns: readonly string[], names: string[], base: number) => [
  ...names,
  ...columns.slice(names.length).map((_, at) => base + at / 100),
]
const cpuRows = (base: number) =>
  ['GET /clusters/{id}', 'POST /jobs', 'GET /clusters/{id}, a fresh token each'].flatMap((operation, at) =>
    sides.map((side, index) => row(peersColumns, [operation, side], base + 10 * at + index)),
  )
const sections = [
  { title: peersTitle, rows: cpuRows(100) },
  { title: shareTitle, rows: cpuRows(200), measured: '2026-02-03 on a machine' },
  { title: coldTitle, rows: programs.map((name, index) => row(coldColumns, [name], 300 + index)) },
  { title: throughputTitle, rows: sides.map((side, index) => row(throughputColumns, [side], 400 + index)) },
]
const results = { measuredAt: '2026-01-02T03:04:05Z', sections }

test('each side stands beside the others with what was measured of it', () => {
  const lines = benchTable(results).split('\n')
  expect(lines).toHaveLength(2 + sides.length)
  expect(lines[3]).toBe(
    '| **the platform** | 101.01 × | 121.01 × | 111.01 × | 201.01 × | 301.06 × | 301.12 × | 401.01 × |',
  )
  expect(lines.at(-1)).toContain('| NestJS 12 | 104.01 ×')
})

test('it says when its parts were measured', () => {
  expect(measuredOn(results)).toBe('2026-01-02 to 2026-02-03')
})

test('there is no table with a gap: what was never measured is refused', () => {
  const without = { ...results, sections: sections.slice(1) }
  expect(() => benchTable(without)).toThrow('never measured')
})
