import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { ApiError } from '../../packages/portal/src/api/api-error.ts'
import { withIdempotencyKey } from '../../packages/portal/src/api/idempotency-key.ts'
import { backOffMs, pollEvery } from '../../packages/portal/src/api/query.ts'
import {
  columnCount,
  compact,
  fitToGrid,
  type GridPosition,
  moveByKey,
  type Step,
  withWidget,
} from '../../packages/portal/src/pages/dashboard/grid.ts'
import { selectorCompletions } from '../../packages/portal/src/pages/clusters/selector-completions.ts'
import { isOutdated } from '../../packages/portal/src/pages/dashboard/widgets/relay-versions.ts'
import { findDuplicate } from '../../packages/portal/src/pages/identity/request.ts'
import { diffLines } from '../../packages/portal/src/pages/jobs/line-diff.ts'
import { actionTitles } from '../../packages/portal/src/pages/audit/action-titles.ts'
import { linesOf, patternOf, plainTextOf } from '../../packages/portal/src/pages/jobs/output-lines.ts'
import { fileParts, outputReader, retain, rowsOf } from '../../packages/portal/src/pages/jobs/output.ts'
import { foldedRows } from '../../packages/portal/src/ui/folded-rows.ts'
import { segmentsOf, withMatches } from '../../packages/portal/src/pages/jobs/terminal-text.ts'
import { nameOf } from '@platform/contract/user-name'
import { safeReturnPath } from '../../packages/portal/src/pages/sign-in/return-path.ts'
import { rounds } from '../support/long.ts'

const pollMs = (state: object) =>
  pollEvery(4)({ state: { status: 'error', dataUpdatedAt: 0, errorUpdatedAt: 1e12, errorUpdateCount: 1, ...state } })

test.each([
  [{ username: 'ada' }, 'ada'],
  [{ username: 'ada', displayName: 'ada' }, 'ada'],
  [{ username: 'ada', displayName: 'Ada Lovelace' }, 'Ada Lovelace (ada)'],
  [{ username: 'עדה', displayName: 'عادة' }, '\u2068عادة\u2069 (\u2068עדה\u2069)'],
])('names the user %j so that letters of any direction keep their place', (user, name) => {
  expect(nameOf(user)).toBe(name)
})

const knownCases = [
  { key: 'env', clusterCount: 3, values: ['prod', 'test'].map((value) => ({ value, clusterCount: 1 })) },
  { key: 'edge', clusterCount: 1, values: [{ value: '', clusterCount: 1 }] },
  { key: 'platform/site', clusterCount: 1, values: [{ value: 'site_1', clusterCount: 1, name: 'Berlin' }] },
]

test.each([
  ['', ['env', 'edge', 'platform/site']],
  ['e', ['env', 'edge']],
  ['env', ['env', 'env=prod', 'env=test']],
  ['edge', ['edge']],
  ['!env', ['!env']],
  ['env=', ['env=prod', 'env=test']],
  ['env != t', ['env != test']],
  ['edge,env==p', ['edge,env==prod']],
  ['env in (', ['env in (prod', 'env in (test']],
  ['env in (prod, te', ['env in (prod, test']],
  ['env in (prod),ed', ['env in (prod),edge']],
  ['platform/site=ber', ['platform/site=site_1']],
  ['env in (prod) ', []],
  ['env=prod ', []],
  ['none=', []],
])('completes the selector %j', (text, expected) => {
  expect(selectorCompletions(text, knownCases).map((completion) => completion.text)).toEqual(expected)
})

test.each([
  ['1.3.9', '1.5.0', true],
  ['1.4.0', '1.5.0', false],
  ['0.9.0', '1.0.0', true],
  ['2.0.0', '1.9.0', false],
  ['1.10.0', '1.11.4', false],
  ['unknown', '1.5.0', false],
])('a relay of version %s at a platform of version %s is outdated: %s', (relay, platform, expected) => {
  expect(isOutdated(relay, platform)).toBe(expected)
})

test('polls successful queries at their interval', () => {
  expect(pollMs({ status: 'success', dataUpdatedAt: 1e12 })).toBe(4000)
})

test('polls a failing query less often the longer it fails, at least once a minute', () => {
  const delays = [1000, 9000, 600_000].map((failingMs) => pollMs({ dataUpdatedAt: 1e12 - failingMs }))
  expect(delays).toEqual([4000, 9000, 60_000])
})

test('backs off a query that never succeeded', () => {
  const delays = [1, 2, 3, 4, 30].map((errorUpdateCount) => pollMs({ errorUpdateCount }))
  expect(delays).toEqual([4000, 4000, 8000, 16_000, 60_000])
})

test('honours Retry-After', () => {
  const rateLimited = new ApiError(429, {}, new Headers({ 'retry-after': '30' }))
  expect(backOffMs(0, rateLimited)).toBe(30_000)
  expect(backOffMs(2, new Error('no response'))).toBe(4000)
})

let count = 0
const post = (name = `cluster ${count++}`) =>
  new Request('https://platform.example.com/api/v1/clusters', { method: 'POST', body: JSON.stringify({ name }) })
const respond = (status: number | undefined) => (status === undefined ? undefined : new Response(null, { status }))

test.each([undefined, 500, 502, 503, 504])('keeps the idempotency key after response %s', async (status) => {
  const request = post()
  const firstRequest = await withIdempotencyKey(request)
  firstRequest.settle(respond(status))
  expect((await withIdempotencyKey(request)).key).toBe(firstRequest.key)
  expect((await withIdempotencyKey(post())).key).not.toBe(firstRequest.key)
})

test.each([201, 409, 429])('uses a new idempotency key after response %d', async (status) => {
  const request = post()
  const firstRequest = await withIdempotencyKey(request)
  firstRequest.settle(respond(status))
  expect((await withIdempotencyKey(request)).key).not.toBe(firstRequest.key)
})

test.each([401, 403, 429])('keeps the key of a lost response after response %d to its retry', async (status) => {
  const request = post()
  const firstRequest = await withIdempotencyKey(request)
  firstRequest.settle(undefined)
  const secondRequest = await withIdempotencyKey(request)
  secondRequest.settle(respond(status))
  expect((await withIdempotencyKey(request)).key).toBe(firstRequest.key)
})

const unsafePaths = String.raw`https://example.com/ http:example.com //example.com ///example.com /\example.com
  \\example.com /%5cexample.com /%2f/example.com /.//example.com /..//example.com /@example.com//x javascript:alert(1)
  data:text/html,x clusters /sign-in?returnTo=/sign-in /setup`

test.for([...unsafePaths.split(/\s+/), '', '/\t/example.com', ' //example.com', '/clusters\n//example.com'])(
  'rejects the return path %j',
  (path) => {
    expect(safeReturnPath(path)).toBeUndefined()
  },
)

const safePaths =
  '/clusters / /jobs?status=Failed&search=a%20b /modules/hello/deep/er#part /settings/account?tab=tokens'

test.for(safePaths.split(' '))('accepts the return path %s', (path) => {
  expect(safeReturnPath(path)).toBe(path)
})

const chunk = (offset: number, data: string, nodeId = 'node_a') => ({ offset, nodeId, stream: 'stdout', data }) as const

const textsOf = (...chunks: Parameters<ReturnType<typeof outputReader>>[0][number][]) =>
  linesOf(rowsOf(outputReader()(chunks), '')).map((line) => [line.lineNumber, plainTextOf(line), line.isError])

test.for<[string, string, string[]]>([
  ['\u001b[3', '1mred\u001b[0m\n', ['red']],
  ['plain \u001b', '[1mbold', ['plain bold']],
  ['\u001b]0;tit', 'le\u0007text', ['text']],
  ['\u001bP1;hidden\u001b', '\\\u001b(0text\u0000\u202e\u009b', ['text']],
  ['first\r', '\nsecond', ['first', 'second']],
  ['10 %\r20', ' %\r30 %\n\n', ['30 %', '']],
  ['whole\u001b[0m', '\n', ['whole']],
])('shows the lines of %j and %j', ([oldLines, newLines, expected]) => {
  expect(textsOf(chunk(0, oldLines), chunk(oldLines.length, newLines)).map(([, text]) => text)).toEqual(expected)
})

test('lines are in the order of their first characters, across nodes, streams and split characters', () => {
  const error = { ...chunk(1, 'e\n'), stream: 'stderr' as const }
  const partialChunk = { ...chunk(3, btoa('b\u001b[31m\xc3')), encoding: 'base64' as const }
  const laterChunk = { ...chunk(11, btoa('\xa4\n')), encoding: 'base64' as const }
  const expected = [
    [1, 'abä', false],
    [2, 'e', true],
    [3, 'c', false],
  ]
  expect(textsOf(chunk(0, 'a'), error, partialChunk, chunk(10, 'c', 'node_b'), laterChunk)).toEqual(expected)
})

test('splits long lines and keeps their style', () => {
  const text = `\u001b[32m${'x'.repeat(3990)}\u001b[1;31m${'y'.repeat(10)}`
  const lines = linesOf(rowsOf(outputReader()([chunk(0, `${text}\n`)]), ''))
  expect(lines.map(({ lineNumber, style, text: part }) => [lineNumber, style, part.length])).toEqual([
    [1, {}, 3995],
    [undefined, { colour: 'green' }, 17],
  ])
})

test.for<[string, object]>([
  ['\u001b[1;31m', { bold: true, colour: 'red' }],
  ['\u001b[94;4m\u001b[39m', { underline: true, colour: undefined }],
  ['\u001b[38;5;196;48;2;0;200;200m', { colour: 'red', background: 'cyan' }],
  ['\u001b[30;8;5m\u001b[38;2;1;2;3m', { colour: undefined }],
  ['\u001b[7m\u001b[2J\u001b[10;10H', { reverse: true }],
  ['\u001b[31m\u001b[m', {}],
  ['\u001b[99999999999999999999;;;m', {}],
])('the style after %j is %j', ([sequence, style]) => {
  expect(segmentsOf(`${sequence}x`, {})).toEqual({ segments: [{ text: 'x', style }], end: style })
})

test('marks matches across styles, literally and in any case', () => {
  const { segments } = segmentsOf('a\u001b[1mB.c', {})
  const markedSegments = withMatches(segments, patternOf('ab.')!)
  expect(markedSegments.map(({ text, isMatch }) => [text, isMatch])).toEqual([
    ['a', true],
    ['B.', true],
    ['c', false],
  ])
  expect('abx'.search(patternOf('b.')!)).toBe(-1)
})

test('retains the beginning and end of long output and counts the lost bytes', () => {
  const read = outputReader()
  const data = 'x'.repeat(64 * 1024)
  let parts: ReturnType<typeof retain> = []
  for (let index = 0; index < 100; index++) parts = retain([...parts, ...read([chunk(index * data.length, data)])])
  expect(parts.length).toBeLessThanOrEqual(17)
  const rows = rowsOf(parts, '')
  const lostRows = rows.filter(({ lostBytes }) => lostBytes > 0)
  expect(lostRows.map(({ lostBytes }) => lostBytes)).toEqual([(100 - parts.length) * data.length])
  expect(lostRows[0]?.part.offset).toBeGreaterThan(256 * 1024)
  expect(rows.at(-1)?.part.offset).toBe(99 * data.length)
  expect(fileParts(rows)).toContainEqual(expect.stringContaining('were not retained'))
})

test.each(['a\xff', '\xe2\x82', 'a\r', '\x1b['])(
  'a download has the bytes of output that ends with %j',
  async (bytes) => {
    const parts = outputReader()([{ ...chunk(0, btoa(bytes)), encoding: 'base64' }])
    const file = new Blob(fileParts(rowsOf(parts, '')))
    expect(Buffer.from(await file.arrayBuffer()).toString('latin1')).toBe(bytes)
  },
)

test('counts output that the platform truncated in bytes, not letters', () => {
  const parts = outputReader()([chunk(0, 'äö'), chunk(4, 'ü'), chunk(1000, 'end')])
  expect(rowsOf(parts, '').map(({ lostBytes }) => lostBytes)).toEqual([0, 0, 994])
})

test('selects the output of one node', () => {
  const parts = outputReader()([chunk(0, 'a'), chunk(1, 'b', 'node_b'), chunk(2, 'c')])
  expect(rowsOf(parts, 'node_b').map(({ part, lostBytes }) => [part.data, lostBytes])).toEqual([['b', 0]])
})

test('a diff shows the changed lines with three equal lines around them', () => {
  const lines = (...changed: [number, string][]) => {
    const texts = Array.from({ length: 20 }, (_, index) => `line ${index}`)
    for (const [index, text] of changed) texts[index] = text
    return texts.join('\n')
  }
  const shownDiff = (before: string, after: string) =>
    diffLines(before, after).map((row) => (row.kind === 'skipped' ? `@${row.count}` : `${row.kind[0]} ${row.text}`))
  const nearbyLines = (from: number) => [from, from + 1, from + 2].map((index) => `s line ${index}`)
  expect(shownDiff(lines(), lines([10, 'x']))).toEqual([
    '@7',
    ...nearbyLines(7),
    'r line 10',
    'a x',
    ...nearbyLines(11),
    '@6',
  ])
  expect(shownDiff('a\nb\n', 'b\nc')).toEqual(['r a', 's b', 'a c'])
  expect(shownDiff('', 'a')).toEqual(['a a'])
  expect(shownDiff('a\n', 'a')).toEqual(['@1'])
  // Too many different lines are not compared with each other.
  const manyLines = (name: string) => Array.from({ length: 3000 }, (_, index) => `${name} ${index}`).join('\n')
  expect(diffLines(manyLines('a'), manyLines('b'))).toHaveLength(6000)
})

/** Pairs of the same provider, spelled differently. */
const duplicates = [
  [
    { type: 'OIDC', issuer: 'https://id.example.com/acme' },
    { type: 'OIDC', issuer: 'https://ID.example.com/acme/' },
  ],
  [
    { type: 'CloudDirectory', tenantId: 'acme.example.com' },
    { type: 'CloudDirectory', tenantId: 'acme.example.com', authorityHost: 'https://login.microsoftonline.com/' },
  ],
  [
    { type: 'OpenSourceIdp', baseUrl: 'https://sso.example.com', realm: 'acme' },
    { type: 'OpenSourceIdp', baseUrl: 'https://sso.example.com/', realm: 'acme' },
  ],
  [
    { type: 'LDAP', url: 'ldaps://directory.example.com' },
    { type: 'LDAP', url: 'ldaps://Directory.example.com:636/' },
  ],
]

test.for(duplicates)('finds the provider that %j would overwrite', ([provider, request]: any) => {
  expect(findDuplicate(request, [provider])).toBe(provider)
  expect(findDuplicate({ type: 'OIDC', issuer: 'https://other.example.com' }, [provider])).toBeUndefined()
})

const { verticalCompactor } = createRequire(new URL('../../packages/portal/package.json', import.meta.url))(
  'react-grid-layout/core',
)
const minSize = { w: 2, h: 2 }
const steps: readonly Step[] = ['left', 'right', 'up', 'down', 'narrower', 'wider', 'shorter', 'taller']

function seededRandom(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * limit)
  }
}

function randomLayout(seed: number): GridPosition[] {
  const next = seededRandom(seed)
  const layout = Array.from({ length: 2 + next(10) }, (_, index) =>
    fitToGrid({ widgetId: `w${index}`, x: next(14), y: next(20), w: next(14), h: next(7) }, minSize),
  )
  return compact(layout)
}
const seeds = Array.from({ length: rounds(30, 300) }, (_, index) => index + 1)

function overlaps(layout: readonly GridPosition[]): string[] {
  const isOutside = ({ x, w }: GridPosition) => x < 0 || x + w > columnCount
  const isApart = (a: GridPosition, b: GridPosition) =>
    a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y
  return layout
    .filter((a, index) => isOutside(a) || !layout.slice(index + 1).every((b) => isApart(a, b)))
    .map((each) => JSON.stringify(each))
}

test('a compact layout has no overlaps and is stable, also for the drag library', () => {
  for (const seed of seeds) {
    const layout = randomLayout(seed)
    expect(overlaps(layout)).toEqual([])
    expect(compact(layout)).toEqual(layout)
    const items = layout.map(({ widgetId: i, ...position }) => ({ i, ...position }))
    const compactedItems: any[] = verticalCompactor.compact(items, columnCount)
    expect(compactedItems.map(({ i, x, y, w, h }) => ({ widgetId: i, x, y, w, h }))).toEqual(layout)
  }
})

test('key steps neither lose widgets nor cause overlaps', () => {
  for (const seed of seeds) {
    const next = seededRandom(seed)
    let layout = randomLayout(seed)
    const { length } = layout
    for (let step = 0; step < 20; step++) {
      layout = moveByKey(layout, `w${next(length)}`, steps[next(steps.length)] ?? 'up', minSize)
      expect(layout).toHaveLength(length)
      expect(overlaps(layout)).toEqual([])
    }
  }
})

test('up and down swap neighbours', () => {
  const column = compact(['a', 'b', 'c'].map((widgetId, y) => ({ widgetId, x: 0, y: y * 3, w: 6, h: 3 })))
  const order = (layout: readonly GridPosition[]) => layout.map(({ widgetId }) => widgetId).join('')
  const movedDown = moveByKey(column, 'a', 'down', minSize)
  expect(order(movedDown)).toBe('bac')
  expect(order(moveByKey(movedDown, 'a', 'down', minSize))).toBe('bca')
  expect(order(moveByKey(moveByKey(movedDown, 'a', 'down', minSize), 'a', 'up', minSize))).toBe('bac')
  expect(moveByKey(column, 'a', 'up', minSize)).toEqual(column)
  expect(moveByKey(column, 'c', 'down', minSize)).toEqual(column)
  expect(moveByKey(column, 'a', 'left', minSize)).toEqual(column)
})

test('a new widget fills the first gap or follows the last widget', () => {
  const layout = compact([
    { widgetId: 'a', x: 0, y: 0, w: 12, h: 3 },
    { widgetId: 'b', x: 6, y: 3, w: 6, h: 3 },
  ])
  expect(withWidget(layout, 'c', { w: 6, h: 2 }).at(-2)).toEqual({ widgetId: 'c', x: 0, y: 3, w: 6, h: 2 })
  expect(withWidget(layout, 'c', { w: 8, h: 2 }).at(-1)).toEqual({ widgetId: 'c', x: 0, y: 6, w: 8, h: 2 })
})

test.for<[string[], number[]]>([
  [[], [0, 1, 4, 5, 6]],
  [['s1'], [0, 1, 2, 3, 4]],
])('similar rows are behind the first one, unless %j is expanded', ([expanded, expected]) => {
  const rows = ['a', 's1', 's2', 's3', 'b']
  const foldedList = foldedRows<string>({
    total: 100,
    rowAt: (index) => rows[index],
    rowKey: String,
    isFolded: (row, newer) => row.startsWith('s') && newer.startsWith('s'),
    expandedKeys: new Set(expanded),
  })
  expect([0, 1, 2, 3, 4].map(foldedList.indexOf)).toEqual(expected)
  expect(foldedList.foldAt(1, String)).toMatchObject({ count: 2, isOpen: expanded.length > 0 })
  expect(foldedList.hiddenCount).toBe(expanded.length > 0 ? 0 : 2)
})

test('every action that the platform records has a title', () => {
  const source = globSync('packages/{core,worker,http}/src/**/*.ts').map((file) => readFileSync(file, 'utf8'))
  const actions = [...source.join('').matchAll(/action: '([a-z_]+\.[a-z_-]+)'/g)].map(([, action = '']) => action)
  expect(actions.length).toBeGreaterThan(50)
  const actionsWithoutTitle = actions.filter((action) => !(action in actionTitles))
  expect(actionsWithoutTitle).toEqual([])
})
