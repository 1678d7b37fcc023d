/**
 * `node test/support/data-fixture.ts`: writes a backup of a small platform in the current layout. Versions with this
 * layout must open the backup.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { layoutVersion } from '@platform/core/db/schema'
import { writeBackup } from '@platform/local/backup/write-backup'
import { expectStatus } from '../conformance/support/answer.ts'
import { PlatformProcess } from './platform.ts'

const file = new URL(`../local/backup/layout-${layoutVersion}.backup`, import.meta.url).pathname

await using platform = await PlatformProcess.start()
const api = await platform.setUp()
const admin = await api.admin
expectStatus(await admin.post('/api/v1/clusters', { name: 'berlin-1', type: 'Hypervisor' }), 201)
const webhook = { url: 'https://hooks.example.com/', events: ['*'] }
expectStatus(await admin.post('/api/v1/webhooks', webhook), 201)
await platform.stop()
// The start publishes the reference module again.
await rm(join(platform.dataDir, 'registry'), { recursive: true })
await rm(file, { force: true })
await writeBackup(platform.dataDir, file)
console.log(file)
