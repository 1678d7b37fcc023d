import { PlatformError, platformError } from '@platform/core/error'
import { RegistryError } from '@platform/oci/error'
import { classifyUpdateError, describeError, UpdateError } from '@platform/worker/updates/errors'
import { TargetError } from '@platform/worker/updates/target/port'
import { expect, test } from 'vitest'

const unexpected = 'Unexpected error; see the log.'
const platformFailure = (code: ConstructorParameters<typeof PlatformError>[0]) => new PlatformError(code, 'Message.')

test.each([
  ['a final target error', new TargetError('Message.', { isFinal: true }), true],
  ['a target error', new TargetError('Message.'), false],
  ['a missing version', platformFailure('version_not_available'), true],
  ['other infrastructure', platformFailure('infrastructure_update_required'), true],
  ['an unreachable release source', platformFailure('release_source_unreachable'), false],
  ['an unavailable database', platformFailure('database_unavailable'), false],
  ['a registry error', new RegistryError('not_found', 'Message.'), true],
  ['an unreachable registry', new RegistryError('unreachable', 'Message.'), false],
] as const)('classifies %s', (_, cause, isFinal) => {
  expect(classifyUpdateError(cause)).toEqual({ message: 'Message.', isFinal, cause })
})

test('classifies an update error as final, without a cause to log', () => {
  expect(classifyUpdateError(new UpdateError('Message.'))).toEqual({ message: 'Message.', isFinal: true })
})

test('retries after unexpected errors and hides their message', () => {
  for (const cause of [new RangeError('x'), 'x']) {
    expect(classifyUpdateError(cause)).toEqual({ message: unexpected, isFinal: false, cause })
  }
})

test('describes any value by its message, at most 500 characters', () => {
  expect(describeError(platformError('forbidden'))).toBe(platformError('forbidden').message)
  expect(['a text', undefined].map(describeError)).toEqual(['a text', 'undefined'])
  expect(describeError(new Error('x'.repeat(501)))).toBe('x'.repeat(500))
})
