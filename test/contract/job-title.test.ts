import { jobTitle, scriptTitle } from '@platform/contract/job-title'
import { expect, test } from 'vitest'

test.each([
  [
    '#!/bin/sh\n# Rotates logs\nset -euo pipefail\n\n  logrotate -f /etc/logrotate.conf\n',
    'logrotate -f /etc/logrotate.conf',
  ],
  ['set -e; set -o pipefail && df\t-h', 'df -h'],
  ['\uFEFF#!/usr/bin/env python3\r\nprint(1)\r\n', 'print(1)'],
  ['settings --apply', 'settings --apply'],
  ['echo \u001b[31mred \u202egnp.exe', 'echo [31mred gnp.exe'],
  [`echo ${'x'.repeat(100)}`, `echo ${'x'.repeat(74)}…`],
  [`${'x'.repeat(78)}😀😀`, `${'x'.repeat(78)}…`],
  ['#!/bin/sh\n# nothing\n: \ud800', ': \ufffd'],
  ['# only a comment', undefined],
])('the title of the script %j is %j', (script, title) => {
  expect(scriptTitle(script)).toBe(title)
})

test('a job without a script line has the title of its type', () => {
  expect([jobTitle({ script: '#' }), jobTitle({ type: 'ModuleInstall' })]).toEqual(['Script', 'Module installation'])
})
