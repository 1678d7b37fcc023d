import { expect, test } from 'vitest'
import { parseOptions } from '../../simulator/command/options.ts'

test.each([
  [[], { action: 'start', stage: 'dev', port: 0 }],
  [['--stage', 'production', '--port', '8090'], { action: 'start', stage: 'production', port: 8090 }],
  [['--functions', '/built'], { action: 'start', stage: 'dev', port: 0, functions: '/built' }],
  [['--stop'], { action: 'stop' }],
  [['--token'], { action: 'token' }],
  [['--help', '--stop'], { action: 'help' }],
])('parses %j', (args, options) => {
  expect(parseOptions(args)).toEqual(options)
})

test.each([
  [['--stage', 'a b'], '--stage: "a b" must be'],
  [['--stage', ''], '--stage: "" must be'],
  [['--port', '70000'], '--port: "70000" is not a port'],
  [['--port', '-1'], "'--port' argument is ambiguous"],
  [['--stop', '--token'], 'exclude each other'],
  [['--stop', '--stage', 'dev'], '--stage only applies to a start'],
  [['dev'], "Unexpected argument 'dev'"],
  [['--stages', 'dev'], "Unknown option '--stages'"],
])('rejects %j with a reason and the usage', (args, reason) => {
  expect(() => parseOptions(args)).toThrow(
    expect.objectContaining({ exitCode: 2, message: expect.stringContaining(reason) }),
  )
  expect(() => parseOptions(args)).toThrow('npm run simulate')
})
