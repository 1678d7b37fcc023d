import { expect, test } from 'vitest'
import { isId, newId } from '@platform/core/id'

test('an identifier is one of its own kind only', () => {
  const id = newId('job')
  expect(isId('job', id)).toBe(true)
  expect(isId('clus', id)).toBe(false)
  expect(isId('clus', id.replace('job', 'clus'))).toBe(true)
})

test.each([
  ['nothing', ''],
  ['a prefix alone', 'job_'],
  ['no line between prefix and rest', newId('job').replace('_', '')],
  ['a letter less', newId('job').slice(0, -1)],
  ['a letter more', `${newId('job')}0`],
  ['a letter that identifiers do not have', `${newId('job').slice(0, -1)}u`],
  ['a capital letter', newId('job').replace(/.$/, 'Z')],
  ['a line break behind it', `${newId('job')}\n`],
  ['something before it', ` ${newId('job')}`],
  ['a prefix that begins alike', newId('job').replace('job', 'jobs')],
  ['a prefix twice', `job_${newId('job')}`],
])('a text with %s is none', (_, text) => {
  expect(isId('job', text)).toBe(false)
})
