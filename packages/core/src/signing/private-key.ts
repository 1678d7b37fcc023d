import { generateKeyPairSync } from 'node:crypto'
import * as z from 'zod'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { newSecret } from '../id.ts'

const PrivateJwk = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), d: z.string() })

export const PrivateKey = z.object({ kid: z.string(), createdAtMs: z.number(), jwk: PrivateJwk })
export type PrivateKey = z.infer<typeof PrivateKey>

export const generateKey = (): PrivateKey => ({
  kid: newSecret().slice(0, 16),
  createdAtMs: now(),
  jwk: PrivateJwk.parse(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })),
})

/** Keys that are replaced regularly: those of access tokens, and those of tokens for modules. */
export type TokenKind = 'access' | 'module'

type KeyName = 'access-keys' | 'module-token-keys' | 'statement-keys' | 'webhook-key' | 'module-key' | 'audit-key'

/** Returns the name of the secret of a key. Each purpose has its own, so that only its signers can read it. */
export const keySecret = (name: KeyName): string => `${config.PLAT_SECRET_KEYS_PREFIX}/${name}`
