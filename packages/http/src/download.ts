/** Headers of a file that is handed out in parts: its type, its name, and where the part after this one is. */
export const download = (name: string, type: string, next: string | undefined): Record<string, string> => ({
  'content-type': type,
  'content-disposition': `attachment; filename="${name}"`,
  ...(next !== undefined && { link: `<${next}>; rel="next"` }),
})
