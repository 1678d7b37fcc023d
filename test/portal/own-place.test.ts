import { expect, test } from 'vitest'
import { safeReturnPath } from '../../packages/portal/src/pages/sign-in/return-path.ts'

/** Where a sign-in may lead: the address that says so may be anybody's. */

const foreign = [
  'https://example.com/',
  'http:example.com',
  '//example.com',
  '///example.com',
  '/\\example.com',
  '\\\\example.com',
  '/%5cexample.com',
  '/%2f/example.com',
  '/.//example.com',
  '/..//example.com',
  '/\t/example.com',
  ' //example.com',
  '/clusters\n//example.com',
  '/@example.com//x',
  'javascript:alert(1)',
  'data:text/html,x',
  'clusters',
  '',
  '/sign-in?returnTo=/sign-in',
  '/setup',
]

test.for(foreign)('nobody is led elsewhere by what an address says: %j', (place) => {
  expect(safeReturnPath(place)).toBeUndefined()
})

test.for([
  '/clusters',
  '/',
  '/jobs?status=Failed&search=a%20b',
  '/modules/hello/deep/er#part',
  '/settings/account?tab=tokens',
])('a page of the portal is one where a sign-in may lead: %s', (place) => {
  expect(safeReturnPath(place)).toBe(place)
})
