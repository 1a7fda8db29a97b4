// A self-signed certificate for hooks.example and its key. Both are public; nobody trusts the certificate by default.
const CERTIFICATE = [
  'MIIBoDCCAUegAwIBAgIUTsaNObPfRGWk/Fx9f2yX4WxRBqgwCgYIKoZIzj0EAwIwGDEWMBQGA1UEAwwNaG9va3MuZXhhbXBs',
  'ZTAgFw0yNjExMTUxNTI1NTNaGA8yMTI2MTAyMjE1MjU1M1owGDEWMBQGA1UEAwwNaG9va3MuZXhhbXBsZTBZMBMGByqGSM49',
  'AgEGCCqGSM49AwEHA0IABKhiBz7qKOKryFsmG6AT8cIiiXO3Gs3inpMrT94iFuigGQGasNAWNHmwthBbfKIQeBMkYAY7UQuX',
  'O3377IS63XGjbTBrMB0GA1UdDgQWBBTx+vW6upd1lBamnpBAqOLxe8zp0DAfBgNVHSMEGDAWgBTx+vW6upd1lBamnpBAqOLx',
  'e8zp0DAPBgNVHRMBAf8EBTADAQH/MBgGA1UdEQQRMA+CDWhvb2tzLmV4YW1wbGUwCgYIKoZIzj0EAwIDRwAwRAIgZwttThU3',
  'Q0pxnDGpQ+1aoD4tM5ZZM7JXWusJMY+zp9MCIAJDOv28fVa3LTkYgI5GAP6HaqRgjcWLa6+pXGTFK0jN',
].join('')
const KEY = [
  'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgGNO27Irz8bk5BOCQbFaDV/lswDTJ/kyTWn5TToIJl4ahRANC',
  'AASoYgc+6ijiq8hbJhugE/HCIolztxrN4p6TK0/eIhbooBkBmrDQFjR5sLYQW3yiEHgTJGAGO1ELlzt9++yEut1x',
].join('')

export const IDENTITY = { cert: pem('CERTIFICATE', CERTIFICATE), key: pem('PRIVATE KEY', KEY) }

function pem(what: string, base64: string): string {
  const lines = base64.match(/.{1,64}/g) ?? []
  return [`-----BEGIN ${what}-----`, ...lines, `-----END ${what}-----`, ''].join('\n')
}
