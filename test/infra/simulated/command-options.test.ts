import { expect, test } from 'vitest'
import { parseOptions } from '../../simulator/command/options.ts'

test.each([
  [[], { action: 'start', stage: 'dev', port: 0 }],
  [['--stage', 'production', '--port', '8090'], { action: 'start', stage: 'production', port: 8090 }],
  [['--functions', '/built'], { action: 'start', stage: 'dev', port: 0, functions: '/built' }],
  [['--stop'], { action: 'stop' }],
  [['--token'], { action: 'token' }],
  [['--help', '--stop'], { action: 'help' }],
])('%j is understood', (args, options) => {
  expect(parseOptions(args)).toEqual(options)
})

test.each([
  [['--stage', 'a b'], '--stage: "a b" has to consist'],
  [['--stage', ''], '--stage: "" has to consist'],
  [['--port', '70000'], '--port: "70000" is no port'],
  [['--port', '-1'], "'--port' argument is ambiguous"],
  [['--stop', '--token'], 'give one of them'],
  [['--stop', '--stage', 'dev'], '--stage is for the start'],
  [['dev'], "Unexpected argument 'dev'"],
  [['--stages', 'dev'], "Unknown option '--stages'"],
])('%j is refused with the reason and the usage', (args, reason) => {
  expect(() => parseOptions(args)).toThrow(
    expect.objectContaining({ exitCode: 2, message: expect.stringContaining(reason) }),
  )
  expect(() => parseOptions(args)).toThrow('npm run deploy:rehearsal')
})
