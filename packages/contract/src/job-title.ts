import type { Job } from './job.ts'

/** Maximum length of the title of a script, in UTF-16 code units. */
const maxLength = 80
/** Maximum length of the part of a script that is searched for a title, because lists compute many titles. */
const maxSearchedLength = 8192

// Control characters, line separators and characters that change the direction of text could disguise a title.
// oxlint-disable-next-line no-control-regex
const unsafeCharacters = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ufeff]+/g

/** Commands that change settings of the shell, such as `set -eu;` or `umask 077;`, at the start of a line. */
const shellOptions = /^(?:set\s+[-+]|shopt\s|umask\s)[^;&|]*(?:;|&&|\|\||$)\s*/

/**
 * Returns the first line of a script that contains a command, shortened and without shell options at its start;
 * undefined if there is none.
 */
export function scriptTitle(script: string): string | undefined {
  for (const [line] of script.slice(0, maxSearchedLength).matchAll(/[^\r\n]+/g)) {
    let text = line.replaceAll(unsafeCharacters, ' ').trim()
    while (shellOptions.test(text)) text = text.replace(shellOptions, '')
    if (text !== '' && !text.startsWith('#')) return shorten(text.replaceAll(/\s+/g, ' '))
  }
  return undefined
}

const shorten = (text: string): string =>
  text.length <= maxLength ? text.toWellFormed() : `${text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`

const typeTitles: Record<Job['type'], string> = {
  InvokeScript: 'Script',
  ModuleInstall: 'Module installation',
  ModuleUninstall: 'Module removal',
  PlatformUpdate: 'Platform update',
  PlatformRollback: 'Platform rollback',
}

/** Returns the title of a job: its name, the title of its script, or a text for its type. */
export const jobTitle = ({
  name,
  script = '',
  type = 'InvokeScript',
}: {
  name?: string | undefined
  script?: string | undefined
  type?: Job['type'] | undefined
}): string => name ?? scriptTitle(script) ?? typeTitles[type]
