import { escapeForTerminal, labelLines } from '@platform/cli/jobs/printer'
import { CliError } from '@platform/cli/exit'
import { readBatchFile } from '@platform/cli/jobs/batch-file'
import { unixText } from '@platform/contract/unix-text'
import { batchesOf } from '@platform/cli/jobs/batch'
import { exitCodeOf } from '@platform/cli/jobs/job'
import { shouldUseColor } from '@platform/cli/print/color'
import { cellOf, type Column, tableOf } from '@platform/cli/print/table'
import { TerminalText } from '@platform/cli/print/terminal-text'
import { cut, oneLine, sanitiseText, widthOf } from '@platform/cli/print/text'
import { stripVTControlCharacters } from 'node:util'
import * as fc from 'fast-check'
import { type ErrorCode, errors } from '@platform/contract/errors'
import { toApiRejection } from '@platform/cli/api/unwrap'
import { expect, test, vi } from 'vitest'

test('escapes control characters, line breaks and direction marks in foreign text', () => {
  const text = 'a\u001b[2Jb\r\nc\u009b31md\u202ee\u2028f'
  expect(oneLine(text)).toBe(String.raw`a\u{1b}[2Jb\r\nc\u{9b}31md\u{202e}e\u{2028}f`)
  expect(sanitiseText('a\tb\n\u001b[0m')).toBe('a\tb\n\\u{1b}[0m')
  expect(cellOf(['a\nb', 'c'])).toBe(String.raw`a\nb, c`)
})

test('keeps table rows within the terminal and columns aligned', () => {
  const columns = [
    { title: 'ID', cellValue: ([id]: string[]) => id },
    { title: 'NAME', cellValue: ([, name]: string[]) => name, isFlexible: true as const },
  ]
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string(), fc.string({ unit: 'grapheme' })), { minLength: 1 }),
      fc.integer({ min: 5, max: 60 }),
      (rows, width) => {
        const lines = tableOf(columns, rows, { width }).split('\n')
        expect(lines).toHaveLength(rows.length + 2)
        expect(lines.filter((line) => widthOf(line) > width)).toEqual([])
      },
    ),
  )
  const rows = [
    ['1', '東京'],
    ['22', 'Berlin'],
  ]
  expect(tableOf(columns, rows, { width: 80 })).toBe('ID  NAME\n1   東京\n22  Berlin\n')
  const longRows = [['1', 'a long name of a cluster']]
  expect(tableOf(columns, longRows, { width: 18 })).toBe('ID  NAME\n1   a long name o…\n')
  expect(cut('東京都', 4)).toBe('東…')
})

test.each([
  ['ASCII', 'abc', 3],
  ['East Asian, also beyond the first plane', '東ｱ가𠀀！', 9],
  ['emoji, flags and joined emoji', '🎉🇩🇪👩‍👩‍👧❤️', 8],
  ['combining marks', 'e\u0301a\u0308\u0323', 2],
  ['a mark without a base', '\u0301', 0],
  ['text symbols', '→…©', 3],
])('measures the columns of %s', (_, text, width) => {
  expect(widthOf(text)).toBe(width)
})

test('a table for a person fits 80 columns, with whole states, ages and names of which the end is visible', () => {
  const hostile = 'prod-eu-berlin-\u001b]52;c;eA==\u0007\u202e-rack-0017'.repeat(3)
  const rows = [
    { id: 'job_01jd8w5k3zr9x2m4c7t6v0b1qa', name: hostile, by: 'ann', status: 'Cancelled', at: '2026-11-01T00:00:00Z' },
    {
      id: 'job_01jd8w5k3zr9x2m4c7t6v0b1qb',
      name: '東京'.repeat(40),
      by: '',
      status: 'Failed',
      at: '2026-11-03T23:59:00Z',
    },
  ]
  const columns: Column<(typeof rows)[number]>[] = [
    { title: 'ID', cellValue: ({ id }) => id, isWide: true },
    { title: 'NAME', cellValue: ({ name }) => name, isFlexible: 'middle' },
    { title: 'BY', cellValue: ({ by }) => by, isFlexible: true },
    { title: 'STATUS', cellValue: ({ status }) => status, format: 'state' },
    { title: 'CREATED', cellValue: ({ at }) => at, format: 'age' },
  ]
  const layout = { isBrief: true, hasRelativeTimes: true, nowMs: Date.parse('2026-11-04T00:00:00Z') }
  const lines = tableOf(columns, rows, { ...layout, width: 80 }).split('\n')
  expect(lines[0]).toMatch(/^NAME +BY +STATUS +AGE$/)
  expect(lines[1]).toMatch(/^prod-eu-berlin-\\u\{1b\}.*….*-rack-0017 +ann +Cancelled +3d$/)
  expect(lines[2]).toMatch(/^(東京)+.*….* +- +Failed +60s$/)
  for (const width of [80, 60, 40, 24]) {
    const narrowTable = tableOf(columns, rows, { ...layout, width, hasColor: true })
    expect(narrowTable).toContain('\u001b[90mCancelled\u001b[0m')
    expect(
      stripVTControlCharacters(narrowTable)
        .split('\n')
        .filter((line) => widthOf(line) > width),
    ).toEqual([])
  }
  const fullTable = tableOf(columns, rows, { width: Infinity })
  expect(fullTable).toMatch(/^ID .*CREATED\njob_01jd8w5k3zr9x2m4c7t6v0b1qa .*Cancelled {2}2026-11-01T00:00:00Z\n/)
})

test.each([
  ['2026-12-03T23:59:00Z', 'in 30d'],
  ['2026-11-04T00:01:59Z', 'in 119s'],
  ['2026-11-03T23:59:59Z', 'expired'],
])('shows the expiry at %s as %s', (at, expected) => {
  const columns: Column<string>[] = [{ title: 'EXPIRES', cellValue: (time) => time, format: 'expiry' }]
  const layout = { hasRelativeTimes: true, nowMs: Date.parse('2026-11-04T00:00:00Z'), width: 80 }
  expect(tableOf(columns, [at], layout)).toContain(`\n${expected}\n`)
})

test.each([
  [{ isTTY: true }, {}, true],
  [{ isTTY: false }, {}, false],
  [{ isTTY: true }, { NO_COLOR: '1' }, false],
  [{ isTTY: true }, { NO_COLOR: '' }, true],
  [{ isTTY: true }, { TERM: 'dumb' }, false],
  [{}, { FORCE_COLOR: '1' }, true],
  [{ isTTY: true }, { FORCE_COLOR: '0' }, false],
  [{}, { FORCE_COLOR: '1', NO_COLOR: '1' }, false],
])('output %j with %j has colours: %s', (output, environment, expected) => {
  expect(shouldUseColor(output, environment)).toBe(expected)
})

test.for([
  ['{"jobs": [{"clusterId": "c", "type": "InvokeScript", "payload": {"script": "s"}}]}'],
  ['[{"cluster": "c", "script": "s"}]'],
  ['{"cluster": "c", "script": "s"}'],
  ['{"cluster": "c", "payload": {"script": "s"}}\n\n'],
])('reads the batch %s', ([text]) => {
  const submission = { type: 'InvokeScript', payload: { script: 's' } }
  expect(readBatchFile(text!).entries).toEqual([{ cluster: 'c', submission }])
})

test('reads a batch with a byte order mark', () => {
  expect(readBatchFile('\uFEFF{"cluster": "c", "script": "s"}').entries).toHaveLength(1)
})

test.for([
  ['CRLF', 'a\r\nb\r\n', 'a\nb\n', ['CRLF line ends']],
  ['a byte order mark', '\uFEFFecho', 'echo', ['a byte order mark']],
  ['a byte order mark before #!', '\uFEFF#!/bin/sh\r\na', '#!/bin/sh\na', ['CRLF line ends', 'a byte order mark']],
  ['mixed and repeated line ends', 'a\r\nb\nc\r\r\nd\re', 'a\nb\nc\nd\re', ['CRLF line ends']],
  ['only CR', 'a\rb\r', 'a\rb\r', []],
  ['a mark inside the text', 'a\uFEFF\n', 'a\uFEFF\n', []],
] as const)('converts a script with %s for Unix interpreters', ([, original, text, corrections]) => {
  expect(unixText(original)).toEqual({ text, corrections })
})

const line = (cluster: string) => JSON.stringify({ cluster, script: 'true', timeoutSeconds: 5 })

test('keeps the order of a batch of lines and names an invalid line', () => {
  const { entries } = readBatchFile(`${line('one')}\n${line('two')}\n`)
  expect(entries.map(({ cluster }) => cluster)).toEqual(['one', 'two'])
  expect(entries[0]!.submission.payload).toEqual({ script: 'true', timeoutSeconds: 5 })
  expect(() => readBatchFile(`${line('one')}\n{oops}\n`)).toThrow(/^Line 2 /)
  expect(() => readBatchFile(`${line('one')}\n{"cluster": "two"}\n`)).toThrow(/^Job 2 /)
})

const invalidJobs = ['{"script": "s"}', '{"cluster": "c", "script": 7}', '{"cluster": "c", "script": "s", "scirpt": 1}']

test.for(['', '[]', '{}', '7', '{"jobs": 7}', ...invalidJobs.map((job) => `[${job}]`)])(
  'rejects the batch %s',
  (text) => {
    expect(() => readBatchFile(text)).toThrow(CliError)
  },
)

test('splits a run on many clusters into batches of at most 500 jobs', () => {
  const ids = Array.from({ length: 1201 }, (_, index) => `clus_${index}`)
  expect(batchesOf(ids).map(({ length }) => length)).toEqual([500, 500, 201])
  expect(batchesOf(ids).flat()).toEqual(ids)
})

test.for([
  ['Completed', 0, 0],
  ['Failed', 7, 7],
  ['Failed', 256, 1],
  ['Failed', -1, 255],
  ['Failed', null, 125],
  ['Failed', 0, 125],
  ['Cancelled', null, 125],
] as const)('a job %s with exit code %s ends the command with %s', ([status, exitCode, expected]) => {
  const result = { exitCode, output: '', nodes: [], truncated: false, totalBytes: 0 }
  expect(exitCodeOf({ status, result })).toBe(expected)
})

const batchJob = { cluster: 'edge', script: 'true' }
const readBatch = (batch: object) => readBatchFile(JSON.stringify(batch))

test('passes on the limits of the batch and of each job', () => {
  const limitedJob = { ...batchJob, timeoutSeconds: 60, deliverWithinSeconds: 5 }
  const payload = { script: 'true', timeoutSeconds: 60 }
  const submission = { type: 'InvokeScript', payload, deliverWithinSeconds: 5 }
  expect(readBatch({ jobs: [limitedJob], maxConcurrency: 1, maxErrors: 0 })).toEqual({
    entries: [{ cluster: 'edge', submission }],
    limits: { maxConcurrency: 1, maxErrors: 0 },
  })
  expect(readBatch([batchJob]).limits).toEqual({})
})

test.each([
  [{ jobs: [batchJob], maxConcurrency: '1' }, 'The batch has a maxConcurrency that is not a number.'],
  [{ jobs: [batchJob], maxErrors: null }, 'The batch has a maxErrors that is not a number.'],
  [{ jobs: [batchJob], maxconcurrency: 1 }, 'The batch has an unknown field maxconcurrency.'],
  [[batchJob, { ...batchJob, timeoutSeconds: '60' }], 'Job 2 of the batch has a timeoutSeconds that is not a number.'],
  [[{ ...batchJob, deliverWithinSeconds: '5' }], 'Job 1 of the batch has a deliverWithinSeconds that is not a number.'],
])('rejects the batch %j', (batch, message) => {
  expect(() => readBatch(batch)).toThrow(message)
})

test('names the problem and the next step of every error of the platform, without routes', () => {
  const traceId = 'f'.repeat(32)
  const rejected = (code: string, fields: object = {}, headers = {}) => {
    const [status, message, wire = code] = errors[code as ErrorCode] as readonly [number, string, string?]
    return toApiRejection(new Response('', { status, headers }), { error: wire, message, traceId, ...fields })
  }
  for (const [code, [status]] of Object.entries(errors)) {
    const { message, exitCode } = rejected(code)
    expect(message).toMatch(/^\S.*\. \(\w+\)\n(.*\n)?Trace id: f{32}$/)
    expect(message).not.toMatch(/\/api\/|\b[A-Z]{3,} \//)
    const expected = status === 401 && code !== 'invalid_credentials' ? 3 : status === 503 ? 4 : 1
    expect([code, exitCode]).toEqual([code, expected])
  }
  const end = `Trace id: ${traceId}`
  expect(rejected('unauthenticated').message).toBe(`Your session has ended. (unauthenticated)\nRun: plat login\n${end}`)
  const rateLimitError = rejected('rate_limited', {}, { 'retry-after': '12' })
  expect(rateLimitError.message).toBe(`Too many requests. (rate_limited)\nWait 12 s and try again.\n${end}`)
  const details = [{ in: 'body', path: '/jobs/1/clusterId', message: 'is not an id.\u001b[2J' }]
  expect(rejected('validation_failed', { details }).message).toContain(
    '\n  jobs.1.clusterId: is not an id.\\u{1b}[2J\n',
  )
  vi.stubEnv('PLAT_TOKEN', 'expired')
  expect(rejected('token_expired').message).toContain(
    'The token in PLAT_TOKEN has expired. (token_expired)\nSet another',
  )
  vi.unstubAllEnvs()
})

const osc = '\u001b]52;c;eA==\u0007'
const [red, green, end] = ['\u001b[31m', '\u001b[1;38;5;42m', '\u001b[0m']

test.each([
  ['colours', `${red}a${end}b`, `${red}a${end}b`],
  ['colours over lines', `${red}a\nb`, `${red}a${end}\n${red}b${end}`],
  ['a colour over the last line end', `${red}a\n`, `${red}a${end}\n`],
  ['colours with erased line ends, as of grep', `${green}\u001b[Ka${end}\u001b[K`, `${green}a${end}`],
  ['the clipboard', osc, String.raw`\u{1b}]52;c;eA==\u{7}`],
  ['the title', '\u001b]0;root\u001b\\', String.raw`\u{1b}]0;root\u{1b}` + '\\'],
  ['a link', '\u001b]8;;http://a\u0007b', String.raw`\u{1b}]8;;http://a\u{7}b`],
  ['cursor movement', '\u001b[1A\u001b[2K', String.raw`\u{1b}[1A\u{1b}[2K`],
  ['a cleared screen', '\u001b[2J\u001bc\f', String.raw`\u{1b}[2J\u{1b}c\u{c}`],
  ['a private mode', '\u001b[?1049h\u001b[6n', String.raw`\u{1b}[?1049h\u{1b}[6n`],
  ['eight-bit controls', '\u009b2J\u009d0;x\u009c\u0090', String.raw`\u{9b}2J\u{9d}0;x\u{9c}\u{90}`],
  ['a colour with an intermediate byte', '\u001b[>4m', String.raw`\u{1b}[>4m`],
  ['an overlong colour', `\u001b[${'1;'.repeat(40)}m`, String.raw`\u{1b}[` + `${'1;'.repeat(40)}m`],
  ['an unfinished sequence', '\u001b[3', String.raw`\u{1b}[3`],
  ['backspaces and a return', 'a\b\rb\r\nc', 'a\\u{8}\\rb\nc'],
  ['reordered text', '\u202eb', String.raw`\u{202e}b`],
  ['a tab and text', '\tΩ🎉', '\tΩ🎉'],
])('in a terminal, output with %s is safe, however it is split', (_, original, expected) => {
  const bytes = Buffer.from(original)
  for (let index = 0; index <= bytes.length; index++) {
    const text = new TerminalText({ hasColor: true })
    const shownText = text.next(bytes.subarray(0, index)) + text.next(bytes.subarray(index)) + text.end()
    if (index === 0) expect(shownText).toBe(expected)
    expect(stripVTControlCharacters(shownText)).toBe(stripVTControlCharacters(expected))
    // oxlint-disable-next-line no-control-regex -- the beginning of a colour
    expect(shownText.replaceAll(/\u001b\[[\d;]+m/g, '')).not.toMatch(/(?![\n\t])\p{Cc}/u)
  }
  const plainText = new TerminalText({ hasColor: false })
  expect(plainText.next(bytes) + plainText.end()).not.toMatch(/(?![\n\t])\p{Cc}/u)
})

test.each([
  [true, false, String.raw`\u{1b}]52;c;eA==\u{7}`],
  [true, true, osc],
  [false, false, osc],
])('output in a terminal: %s, with --raw: %s is %j', (isTerminal, isRaw, expected) => {
  const { isTTY } = process.stdout
  process.stdout.isTTY = isTerminal
  try {
    expect(escapeForTerminal(Buffer.from(osc), isRaw).toString()).toBe(expected)
  } finally {
    process.stdout.isTTY = isTTY
  }
})

test('prefixes lines after a line feed only', () => {
  expect(labelLines('a', Buffer.from('one\rtwo\u2028three\nfour\r\n\nfive\n')).toString()).toBe(
    'a | one\rtwo\u2028three\na | four\r\na | \na | five\n',
  )
  expect(labelLines('a', Buffer.from('one\u2029two\u0085three\vfour\ffive')).toString()).toBe(
    'a | one\u2029two\u0085three\vfour\ffive',
  )
  expect(labelLines('a', Buffer.from('1\xff\n\xc3', 'latin1')).toString('latin1')).toBe('a | 1\xff\na | \xc3')
})
