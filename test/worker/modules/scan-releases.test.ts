// First: it sets what the platform may reach, which core reads when it is imported.
import { client, privateKey, registry } from '../../core/support/module-images.ts'
import { afterEach, expect, test } from 'vitest'
import { readCatalog } from '@platform/core/modules/catalog/catalog'
import * as keys from '@platform/core/db/keys'
import { removeAll } from '@platform/core/db/transact'
import { scan } from '@platform/worker/modules/scan'
import { artifactOf } from '../../../scripts/release/artifact.ts'
import { publish } from '../../../scripts/release/publish.ts'

afterEach(() => removeAll(keys.catalog()))

test('releases of the platform in the same registry are no modules, and no problem either', async () => {
  const facts = { version: '9.0.0', createdAt: '2026-02-03T04:05:06.000Z' }
  const artifact = artifactOf(facts, new Map([['health', Buffer.from('a zip')]]))
  await publish({ client, name: 'platform/releases' }, artifact, privateKey)
  for (let time = 0; time < 2; time++) {
    await scan(`${registry.host}/platform/*`)
    const { repositories, scan: last } = await readCatalog()
    expect(last?.problems).toEqual([])
    expect(repositories.map(({ reference, releases }) => ({ reference, releases }))).toEqual([
      { reference: `${registry.host}/platform/releases`, releases: [] },
    ])
  }
})
