import { chmod, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runFolderFor } from '@platform/local/modules/run-folder'
import { checkRunFolder } from '@platform/worker/runtimes/supervised'
import { expect, onTestFinished, test } from 'vitest'

test('sockets are in the data folder, where their paths fit', async () => {
  expect(await runFolderFor('/srv/platform')).toBe('/srv/platform/modules/run')
})

test('sockets of a data folder with a long path are elsewhere: always in the same place, and for its owner only', async () => {
  const dataDir = `/${'long/'.repeat(30)}${process.pid}`
  const folder = await runFolderFor(dataDir)
  onTestFinished(() => rm(join(folder, '..'), { recursive: true }))
  expect(folder.startsWith(tmpdir())).toBe(true)
  expect(() => checkRunFolder(folder)).not.toThrow()
  expect(await runFolderFor(dataDir)).toBe(folder)
  expect((await stat(join(folder, '..'))).mode & 0o777).toBe(0o700)

  await chmod(join(folder, '..'), 0o755)
  await expect(runFolderFor(dataDir)).rejects.toThrow('Set PLAT_DATA_DIR to a folder with a shorter path.')
})
