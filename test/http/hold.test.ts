import { expect, test, vi } from 'vitest'
import { longPollHeaders } from '@platform/http/long-poll'

vi.hoisted(() =>
  Object.assign(process.env, {
    PLAT_RELAY_NOTIFY_URL: 'http://127.0.0.1:1/wake',
    PLAT_HEARTBEAT_INTERVAL_SECONDS: '20',
  }),
)

test('an idle answer whose caller can wait asks the gateway to hold it', () => {
  expect(longPollHeaders(true, 'clus_1', 'wait=10')).toEqual({
    'grip-hold': 'response',
    'grip-channel': 'clus_1',
    'grip-timeout': '10',
    'preference-applied': 'wait=10',
  })
})

test.each([
  ['wait=10', '10'],
  ['respond-async, wait=5', '5'],
  ['wait=5;foo=bar, handling=lenient', '5'],
  ['Wait = 7', '7'],
  ['wait=600', '20'],
])('`Prefer: %s` waits for %s seconds: never longer than the heartbeat interval', (prefer, seconds) => {
  expect(longPollHeaders(true, 'clus_1', prefer)['grip-timeout']).toBe(seconds)
})

test.each([
  [undefined],
  [''],
  ['wait'],
  ['wait=0'],
  ['wait=-5'],
  ['wait=1e9'],
  ['wait=x'],
  ['await=5'],
  ['wait=99999'],
])('`Prefer: %s` does not wait', (prefer) => {
  expect(longPollHeaders(true, 'clus_1', prefer)).toEqual({})
})

test('an answer that brings work is never held', () => {
  expect(longPollHeaders(false, 'clus_1', 'wait=10')).toEqual({})
})
