import { publishedIn } from '@platform/worker/modules/lifecycle/published'
import { publishedLimits } from '@platform/modules/protocol'
import { expect, test } from 'vitest'

const headers = (value: unknown) => ({
  'x-platform-published': Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url'),
})
const own = { type: 'module.hello.greeted', subject: 'ada', data: { count: 1 } }

test('events of the module’s own are passed on', () => {
  expect(publishedIn('hello', headers([own, { type: 'module.hello.left', data: {} }]))).toEqual([
    own,
    { type: 'module.hello.left', data: {} },
  ])
})

test.for([
  ['of the platform', { ...own, type: 'platform.cluster.deleted' }],
  ['of another module', { ...own, type: 'module.other.greeted' }],
  ['of a module whose id begins alike', { ...own, type: 'module.hello2.greeted' }],
] as const)('events %s are left out, and the others passed on', ([, foreign]) => {
  expect(publishedIn('hello', headers([foreign, own]))).toEqual([own])
})

test.for([
  ['is no JSON', '['],
  ['is no list', own],
  ['holds what is no event', [own, 1]],
  ['holds an event without data', [{ type: own.type }]],
  ['holds an event whose data are a list', [{ ...own, data: [1] }]],
  ['holds a type that is too long', [{ ...own, type: `module.hello.${'x'.repeat(200)}` }]],
  ['is larger than any SDK makes it', [{ ...own, data: { text: 'x'.repeat(publishedLimits.headerBytes) } }]],
] as [string, unknown][])('a header that %s is ignored whole', ([, value]) => {
  expect(publishedIn('hello', headers(value))).toEqual([])
})

test('no more are passed on than an SDK sends', () => {
  expect(publishedIn('hello', headers(Array.from({ length: 30 }, () => own)))).toHaveLength(publishedLimits.events)
})

test('an answer without the header has published nothing', () => {
  expect(publishedIn('hello', {})).toEqual([])
})
