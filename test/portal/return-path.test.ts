import { expect, test } from 'vitest'
import { safeReturnPath } from '../../packages/portal/src/pages/sign-in/return-path.ts'

const unsafe = String.raw`https://example.com/ http:example.com //example.com ///example.com /\example.com
  \\example.com /%5cexample.com /%2f/example.com /.//example.com /..//example.com /@example.com//x javascript:alert(1)
  data:text/html,x clusters /sign-in?returnTo=/sign-in /setup`

test.for([...unsafe.split(/\s+/), '', '/\t/example.com', ' //example.com', '/clusters\n//example.com'])(
  'rejects the return path %j',
  (path) => {
    expect(safeReturnPath(path)).toBeUndefined()
  },
)

const safe =
  '/clusters / /jobs?status=Failed&search=a%20b /modules/hello/deep/er#part /settings/account?tab=tokens'.split(' ')

test.for(safe)('accepts the return path %s', (path) => {
  expect(safeReturnPath(path)).toBe(path)
})
