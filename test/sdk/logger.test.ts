import { expect, test, vi } from 'vitest'
import { instanceOf } from '../support/sdk-instance.ts'
import { captureLog } from '../support/log.ts'

const log = instanceOf({}).host.context.getLogger('parts')

test.for(['debug', 'info', 'warn', 'error'] as const)('writes a line of level %s', async (level) => {
  const fields = { count: 3, module_id: 'other', level: 'x' }
  const [line] = await captureLog(async () => log[level]('Something was done', fields))
  expect(line).toEqual({
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    level,
    message: 'Something was done',
    category: 'parts',
    module_id: 'sample',
    module_version: '1.2.3',
    count: 3,
  })
})

test('logs errors with stack and cause', async () => {
  const error = new Error('Outer', { cause: new Error('Inner') })
  const [line] = await captureLog(async () => log.error('Failed', { error }))
  expect(line?.['error'].stack).toContain('Error: Outer')
  expect(line?.['error'].cause.stack).toContain('Error: Inner')
})

const circular: Record<string, unknown> = {}
circular['fields'] = circular
const throwingObject = Object.defineProperty({}, 'x', {
  enumerable: true,
  get: () => {
    throw new Error('No.')
  },
})

test.for([
  ['are circular', circular],
  ['throw when they are read', throwingObject],
] as const)('logs the message if its fields %s', async ([, fields]) => {
  const lines = await captureLog(async () => log.warn('Odd', fields))
  expect(lines).toMatchObject([{ message: 'Odd', module_id: 'sample', unloggable: expect.any(String) }])
})

test('logs big integers, with the module id as the default category', async () => {
  const lines = await captureLog(async () =>
    instanceOf({})
      .host.context.getLogger()
      .info('x', { count: 2n ** 64n }),
  )
  expect(lines).toMatchObject([{ category: 'sample', count: '18446744073709551616' }])
})

test('escapes control characters in messages', () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  log.info('a\n{"level":"error"}\u001b[2J\u009b2J\u2028\r')
  const [[line]] = write.mock.calls as unknown as [[string]]
  write.mockRestore()
  // oxlint-disable-next-line no-control-regex
  expect(line.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028]/)
  expect(JSON.parse(line).message).toBe('a\n{"level":"error"}\u001b[2J\u009b2J\u2028\r')
})
