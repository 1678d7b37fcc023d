import { PlatformError, platformError } from '@platform/core/error'
import { RegistryError } from '@platform/oci/error'
import { classifyUpdateError, UpdateError, describeError } from '@platform/worker/updates/errors'
import { TargetError } from '@platform/worker/updates/target/port'
import { expect, test } from 'vitest'

const unknown = 'The platform failed in a way that it does not know. Its log tells more.'

test.each([
  ['what serves cannot do', new TargetError('No such function.', { isFinal: true }), 'No such function.', true],
  ['what serves cannot do now', new TargetError('Nobody answers.'), 'Nobody answers.', false],
  ['a release that is gone', new PlatformError('version_not_available', 'It is gone.'), 'It is gone.', true],
  [
    'a release of other infrastructure',
    new PlatformError('infrastructure_update_required', 'Deploy.'),
    'Deploy.',
    true,
  ],
  ['a registry of releases that is away', new PlatformError('release_source_unreachable', 'Away.'), 'Away.', false],
  ['a store that is away', new PlatformError('database_unavailable', 'Away.'), 'Away.', false],
  ['a registry that says no', new RegistryError('not_found', 'Not there.'), 'Not there.', true],
  ['a registry that says nothing', new RegistryError('unreachable', 'Silence.'), 'Silence.', false],
  ['what nobody thought of', new RangeError('x'), unknown, false],
  ['what is no error', 'x', unknown, false],
] as const)('%s is told in words, and is final where another try would not help', (_, error, message, isFinal) => {
  expect(classifyUpdateError(error)).toEqual({ message, isFinal, cause: error })
})

test('what is wrong with a release is final, and no failure of the platform', () => {
  const failure = new UpdateError('It does not answer.')
  expect(classifyUpdateError(failure)).toEqual({ message: 'It does not answer.', isFinal: true })
  expect(failure.name).toBe('UpdateFailure')
})

test('an error is told by its message, whatever it is, and not at length', () => {
  expect(describeError(platformError('forbidden'))).toBe(platformError('forbidden').message)
  expect(describeError('a text')).toBe('a text')
  expect(describeError(undefined)).toBe('undefined')
  expect(describeError(new Error('x'.repeat(501)))).toBe('x'.repeat(500))
})
