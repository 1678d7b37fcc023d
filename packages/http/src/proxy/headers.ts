/** What a header may hold on its way: another reader could see a second header in anything else. */
export const isHeaderSafe = (value: string): boolean => /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value)

/** The headers on a list, as far as they are there and can be handed on. */
export const proxyHeaders = (
  list: readonly string[],
  headers: Readonly<Record<string, string | undefined>>,
): Record<string, string> =>
  Object.fromEntries(
    list.flatMap((name) => {
      const value = headers[name]
      return value !== undefined && isHeaderSafe(value) ? [[name, value]] : []
    }),
  )
