import { moduleLine } from '@platform/local/modules/module-log'
import { expect, test } from 'vitest'

test('a module’s own JSON stays as it is', () => {
  const line = '{"time":"…", "level":"warn","message":"One","module_id":"hello","n":1.0}'
  expect(moduleLine('hello', line)).toBe(line)
})

test('JSON that names another module, or none, is given the name', () => {
  expect(JSON.parse(moduleLine('hello', '{"message":"One","module_id":"other"}'))).toEqual({
    message: 'One',
    module_id: 'hello',
  })
  expect(JSON.parse(moduleLine('hello', '{"level":"error"}'))).toEqual({ level: 'error', module_id: 'hello' })
})

test.each(['plain text', '{"broken": ', '[1]', '"text"', 'null', '{}x'])('%s becomes the message of a line', (text) => {
  expect(JSON.parse(moduleLine('hello', text))).toEqual({
    time: expect.stringMatching(/^\d{4}-/),
    level: 'info',
    message: text,
    module_id: 'hello',
  })
})

test('nothing that a module prints acts on a terminal', () => {
  const acting = '\u001b[2J\u009b31m\u2028'
  for (const line of [acting, JSON.stringify({ message: acting }), `{"module_id":"hello","x":"\u009b31m"}`]) {
    // oxlint-disable-next-line no-control-regex
    expect(moduleLine('hello', line)).toMatch(/^[^\u0000-\u001f\u007f-\u009f\u2028]*$/)
  }
})
