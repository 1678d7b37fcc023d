import { expect, test } from 'vitest'
import { lambdaPermissions } from '../../simulator/aws/required-permissions.ts'

const resource = 'arn:aws:lambda:us-east-1:000000000000:function:one'

test.each([
  ['GET', 'ListTags'],
  ['POST', 'TagResource'],
  ['DELETE', 'UntagResource'],
  ['PUT', `unknown PUT /tags/${encodeURIComponent(resource)}`],
])('%s on the tags of a function requires only %s', (method, action) => {
  const [demand, ...others] = lambdaPermissions(method, `/2017-03-31/tags/${encodeURIComponent(resource)}`, {})
  expect([demand?.action, others]).toEqual([`lambda:${action}`, []])
})
