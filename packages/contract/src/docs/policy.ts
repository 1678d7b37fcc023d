async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`
}

/**
 * Returns a Content-Security-Policy that allows only the style and the script of the page, `data:` images and requests
 * to the same origin.
 */
export async function docsSecurityPolicy(page: string): Promise<string> {
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(page) ?? []
  const [, script = ''] = /<script type="module">(.*?)<\/script>/s.exec(page) ?? []
  return [
    "default-src 'none'",
    `style-src ${await hashOf(style)}`,
    `script-src ${await hashOf(script)}`,
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}
