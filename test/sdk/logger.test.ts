import { expect, test, vi } from 'vitest'
import { instanceOf } from '../support/sdk-instance.ts'
import { captureLog } from '../support/log.ts'

const log = instanceOf({}).host.context.getLogger('parts')

test.for(['debug', 'info', 'warn', 'error'] as const)('a line of %s says when, what and who', async (level) => {
  const lines = await captureLog(async () =>
    log[level]('Something was done', { count: 3, module_id: 'other', level: 'x' }),
  )
  expect(lines).toEqual([
    {
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      level,
      message: 'Something was done',
      category: 'parts',
      module_id: 'sample',
      module_version: '1.2.3',
      count: 3,
    },
  ])
})

test('the category is the module’s id where none is given', async () => {
  const lines = await captureLog(async () => instanceOf({}).host.context.getLogger().info('x'))
  expect(lines).toMatchObject([{ category: 'sample' }])
})

test('errors are told with their stack and cause', async () => {
  const error = new Error('Outer', { cause: new Error('Inner') })
  const [line] = await captureLog(async () => log.error('Failed', { error }))
  expect(line?.['error'].stack).toContain('Error: Outer')
  expect(line?.['error'].cause.stack).toContain('Error: Inner')
})

test.for([
  [
    'refer to themselves',
    () => {
      const fields: Record<string, unknown> = {}
      return Object.assign(fields, { fields })
    },
  ],
  [
    'throw',
    () => ({
      toJSON: 1,
      get x() {
        throw new Error('No.')
      },
    }),
  ],
] as const)('fields that %s cost no more than themselves', async ([, fields]) => {
  const given = fields()
  const lines = await captureLog(async () =>
    log.warn('Odd', Object.defineProperties({}, Object.getOwnPropertyDescriptors(given))),
  )
  expect(lines).toMatchObject([{ message: 'Odd', module_id: 'sample', unloggable: expect.any(String) }])
})

test('big integers can be told', async () => {
  expect(await captureLog(async () => log.info('Large', { count: 2n ** 64n }))).toMatchObject([
    { count: '18446744073709551616' },
  ])
})

test('a message cannot act on a terminal or forge a line', () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  log.info('a\n{"level":"error"}\u001b[2J\u009b2J\u2028\r')
  const [[line]] = write.mock.calls as unknown as [[string]]
  write.mockRestore()
  // oxlint-disable-next-line no-control-regex
  expect(line.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028]/)
  expect(JSON.parse(line).message).toBe('a\n{"level":"error"}\u001b[2J\u009b2J\u2028\r')
})
