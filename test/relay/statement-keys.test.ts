import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { signJws } from '@platform/relay/jws'
import { expect, test } from 'vitest'
import type { FakePlatform } from './support/fake-platform.ts'
import { Stage } from './support/stage.ts'

const newSigner = (kid: string) => ({ kid, ...generateKeyPairSync('ed25519') })
type Signer = ReturnType<typeof newSigner>

const publicKeyOf = ({ kid, publicKey }: { kid: string; publicKey: KeyObject }) => ({
  ...publicKey.export({ format: 'jwk' }),
  kid,
})
const introduce = (signer: Signer, next: Signer, typ = 'statement-key+jws') =>
  signJws({ typ, kid: signer.kid }, { key: publicKeyOf(next), iat: 0 }, signer.privateKey)

const frequentHeartbeats = { prepare: (platform: FakePlatform) => void (platform.heartbeatIntervalSeconds = 1) }

test('a relay learns the keys that follow its own, keeps them after a restart, and runs jobs that they sign', async () => {
  await using stage = await Stage.start(frequentHeartbeats)
  const { platform } = stage
  const firstSigner = platform.signer
  expect((await platform.run({ script: 'true' })).completion?.outcome).toBe('exited')
  const [secondSigner, thirdSigner] = [newSigner('second'), newSigner('third')]
  platform.signer = thirdSigner
  platform.statementKeys = [introduce(firstSigner, secondSigner), introduce(secondSigner, thirdSigner)]
  const isLearned = () => platform.heartbeats.at(-1)?.statementKey === 'third'
  platform.addJob({ script: 'true' })
  await platform.until(isLearned)
  platform.statementKeys = []
  await stage.relay.end('SIGTERM')
  stage.startRelay()
  expect((await platform.run({ script: 'true' })).completion?.outcome).toBe('exited')
  const identity = JSON.parse(await readFile(join(stage.stateFolder, 'identity.json'), 'utf8'))
  expect(identity.statementKeys.map(({ kid }: { kid: string }) => kid)).toEqual(['third', 'second'])
})

test.each<[string, (first: Signer, next: Signer) => string[]]>([
  ['that no trusted key leads to', () => []],
  ['that another key introduces', (_, next) => [introduce(next, next)]],
  ['with the signature of another key', (first, next) => [introduce({ ...next, kid: first.kid }, next)]],
  ['in a statement of another type', (first, next) => [introduce(first, next, 'job-statement+jws')]],
  ['that follows a replaced key', (first, next) => [introduce(first, newSigner('second')), introduce(first, next)]],
])('a relay claims no jobs with a key %s, and prints how to enroll it', async (_, statementKeys) => {
  await using stage = await Stage.start(frequentHeartbeats)
  const { platform } = stage
  const next = newSigner('next')
  await platform.until(() => platform.heartbeats.length > 0)
  platform.statementKeys = statementKeys(platform.signer, next)
  platform.signer = next
  const job = platform.addJob({ script: 'true' })
  const countBefore = platform.heartbeats.length
  await platform.until(() => platform.heartbeats.slice(countBefore).some(({ freeSlots }) => freeSlots === 0))
  await stage.relay.writes(/plat cluster enrollment-token/)
  expect(job.completion?.outcome).not.toBe('exited')
})
