import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { layoutVersion } from '@platform/core/db/schema'
import { restoreBackup } from '@platform/local/backup/restore-folder'
import { expect, test } from 'vitest'
import { expectStatus } from '../../conformance/support/answer.ts'
import { PlatformProcess } from '../../support/platform.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/** Backups of the current layout and of an older one; `test/support/data-fixture.ts` writes those of the current layout. */
const backups = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.backup'))

test('there is data of the current layout', () => {
  expect(backups).toContain(`layout-${layoutVersion}.backup`)
})

test.each(backups)('opens %s, or rejects it with the layout that it requires', async (name) => {
  await using folder = await temporaryFolder()
  const restoring = restoreBackup(join(import.meta.dirname, name), folder.path)
  if (name !== `layout-${layoutVersion}.backup`) {
    await expect(restoring).rejects.toThrow(/It has layout \d+, and this version of the platform requires layout/)
    return
  }
  await restoring
  await using platform = await PlatformProcess.start({ PLAT_DATA_DIR: folder.path })
  const api = await platform.api()
  const admin = await api.admin
  const names = expectStatus(await admin.get('/api/v1/clusters'), 200).items.map((item: { name: string }) => item.name)
  expect(names).toEqual(['berlin-1'])
  expect(expectStatus(await admin.get('/api/v1/webhooks'), 200).items).toMatchObject([{ enabled: true }])
  expectStatus(await admin.get('/api/v1/modules/catalog'), 200)
  expect(expectStatus(await admin.get('/api/v1/platform/audit/verify'), 200)).toMatchObject({ valid: true })
})
