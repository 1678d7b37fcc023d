import { startDockerRegistry } from '../support/docker-registry.ts'
import { atLeast, none, type Part } from './part.ts'
import { randomOf } from './random.ts'
import { overChange, overCorpus } from './signatures/agreement.ts'
import { tamper } from './signatures/tampering.ts'

export const part: Part = {
  title: 'Signatures of images',
  how:
    'In Debian’s docker-registry an image is exchanged, and its signature removed, copied, cut and changed, in both layouts that ' +
    'there are; and on a corpus of good and bad signatures, and on bundles with bytes changed by chance, our verifier and the one of ' +
    'the sigstore project have to say the same.',
  run: async ({ isShort, seed, say }) => {
    await using registry = await startDockerRegistry()
    const tampered = await tamper(registry.host)
    const corpus = await overCorpus()
    const changed = await overChange(isShort ? 20 : 5000, randomOf(seed))
    for (const line of [...tampered.verified, ...corpus.different, ...changed.different]) say(line)
    return [
      atLeast('ways of tampering in a real registry', tampered.cases, 8),
      none('images that are well signed there and not verified', tampered.withoutControl),
      none('images that were tampered with there and are verified', tampered.verified.length, String(tampered.cases)),
      atLeast('signatures of the corpus that are good', corpus.verified, 10),
      none('signatures of the corpus that the two judge differently', corpus.different.length, String(corpus.cases)),
      none('changed bundles that we verify and sigstore does not', changed.different.length, `${changed.cases}`),
    ]
  },
}
