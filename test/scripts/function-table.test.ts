import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { functionNames } from '@platform/core/updates/function-names'
import {
  begin,
  columns,
  end,
  type FunctionRow,
  functionRows,
  measuredRatios,
  pagePath,
} from '../../scripts/function-rows.ts'
import { root } from '../../scripts/source.ts'
import { bundledFunctions } from '../support/built-once.ts'

/** Rewritten by `npm run functions:table`. */
const page = await readFile(join(root, pagePath), 'utf8')
const section = page.slice(page.indexOf(begin), page.indexOf(end))
const [header = [], , ...lines] = section
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )

let rows: FunctionRow[]
beforeAll(async () => {
  rows = await functionRows(await bundledFunctions())
}, 300_000)

test('the table names every function, in the order of the route table', () => {
  expect(header).toEqual(columns)
  expect(lines.map(([name]) => name)).toEqual(functionNames.map((name) => `\`${name}\``))
})

test('it says how large they are', () => {
  const wrong = rows.filter(({ initialKib, lateKib }, index) => {
    const [, initial, late] = lines[index] ?? []
    return Math.abs(Number(initial) - initialKib) > 2 || Math.abs(Number(late) - lateKib) > 2
  })
  expect(wrong.map(({ name }) => name)).toEqual([])
})

test('it says what each may use', () => {
  expect(lines.map((cells) => cells[4])).toEqual(rows.map(({ grants }) => grants))
})

test('its ratios are those of the last measurement', async () => {
  const { day } = await measuredRatios()
  expect(section).toContain(`measured on ${day}`)
  expect(lines.map((cells) => cells[3])).toEqual(rows.map(({ ratio }) => ratio?.toFixed(2) ?? ''))
})
