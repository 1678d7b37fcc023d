import { expect, test } from 'vitest'
import { apiTokenLimit } from '@platform/contract/api-token'
import { batchLimit } from '@platform/contract/batch'
import { savedFilterLimit } from '@platform/contract/preference'
import { siteLimit } from '@platform/contract/site'
import { webhookLimit } from '@platform/contract/webhook'
import { page } from './support/markdown.ts'

test('documented limits match the contract', () => {
  const rows = [...page('docs/operations.md').matchAll(/^\| (.+) of one (batch|user|organisation) \| (\d+)/gm)]
  expect(Object.fromEntries(rows.map(([, what, whose, limit]) => [`${what} of one ${whose}`, Number(limit)]))).toEqual({
    'jobs of one batch': batchLimit,
    'API tokens of one user': apiTokenLimit,
    'saved filters of one user': savedFilterLimit,
    'sites of one organisation': siteLimit,
    'webhooks of one organisation': webhookLimit,
    // A constant of core that is not exported to other packages.
    'identity providers of one organisation': 50,
  })
})
