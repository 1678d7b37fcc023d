export interface UnixText {
  text: string
  /** Empty if the text is unchanged. */
  corrections: ('CRLF line ends' | 'a byte order mark')[]
}

/**
 * Converts CRLF line endings of a script to LF and removes a byte order mark, because shells and `#!` lines fail
 * with them. Keeps a CR that does not end a line, because it may be data.
 */
export function unixText(originalText: string): UnixText {
  const unmarkedText = originalText.replace(/^\uFEFF+/, '')
  const text = unmarkedText.replaceAll(/\r+\n/g, '\n')
  return {
    text,
    corrections: [
      ...(text === unmarkedText ? [] : ['CRLF line ends' as const]),
      ...(unmarkedText === originalText ? [] : ['a byte order mark' as const]),
    ],
  }
}
