/**
 * The page behind the navigation entry. It needs no script, and no style of its own: the portal shows it in a sandbox. What
 * stands in it comes from this module's own code, so that nothing has to be escaped.
 */
export const page = (greeting: string, version: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Hello World</title>
  </head>
  <body>
    <main>
      <h1>${greeting}</h1>
      <p>This page comes from the module <code>hello</code>, version ${version}.</p>
    </main>
  </body>
</html>
`
