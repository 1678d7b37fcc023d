import { expect, test } from 'vitest'
import { apiTokenLimit } from '@platform/contract/api-token'
import { batchLimit } from '@platform/contract/batch'
import { savedFilterLimit } from '@platform/contract/preference'
import { siteLimit } from '@platform/contract/site'
import { webhookLimit } from '@platform/contract/webhook'
import { page } from './support/markdown.ts'

test('the limits that operators read are those of the contract', () => {
  const rows = [...page('docs/operations.md').matchAll(/^\| (.+) of one (batch|user|organisation) \| (\d+)/gm)]
  expect(Object.fromEntries(rows.map(([, what, whose, limit]) => [`${what} of one ${whose}`, Number(limit)]))).toEqual({
    'jobs of one batch': batchLimit,
    'API tokens of one user': apiTokenLimit,
    'saved filters of one user': savedFilterLimit,
    'sites of one organisation': siteLimit,
    'webhooks of one organisation': webhookLimit,
    // With the platform, which has no constant for it that other packages may read.
    'identity providers of one organisation': 50,
  })
})
