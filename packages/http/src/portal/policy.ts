// The policy allows the portal's own files, the API, and frames with module pages, but no inline scripts or styles.
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  // Module scripts are served from this origin and must not register a service worker for the portal.
  "worker-src 'none'",
  "frame-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

// Neither the portal nor module pages use these browser features.
const deniedFeatures = ['camera', 'display-capture', 'geolocation', 'microphone', 'payment', 'serial', 'usb']

// Browsers use only HTTPS for one year. Over plain HTTP, they ignore the header.
const transportSecurityHeaders = { 'strict-transport-security': 'max-age=31536000' }

/** Returns the headers of the portal's page. `protocol` is that of the request to the gateway: `https` or `http`. */
export const shellHeaders = (protocol: string | undefined): Record<string, string> => ({
  'content-security-policy': contentPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'permissions-policy': deniedFeatures.map((feature) => `${feature}=()`).join(', '),
  ...(protocol === 'https' && transportSecurityHeaders),
})
