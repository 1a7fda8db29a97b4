# Creates, reads, updates, conflicts and deletes with the class that OpenAPI::Client generates from the document of a service.
# Usage: VERSO_KEY=… perl conflict.pl <document> <base URL>. Prints one line of JSON.
use Mojo::Base -strict;
use Mojo::JSON qw(encode_json);
use OpenAPI::Client;

my ($document, $url) = @ARGV;
my $client = OpenAPI::Client->new("file://$document", base_url => $url);
$client->on(after_build_tx => sub { $_[1]->req->headers->header('API-KEY' => $ENV{VERSO_KEY}) });

my $created = $client->createCrmContact({body => {data => {firstName => 'Grace', lastName => 'Hopper'}}});
my $record = $created->res->json->{data}[0];
my $id = $record->{id};
my $read = $client->readCrmContact({id => $id});
my $update = sub { $client->updateCrmContact({id => $id, body => {data => {version => 0, @_}}}) };
my $updated = $update->(lastName => 'Murray');
my $conflict = $update->(lastName => 'Smith');
my $found = $client->findCrmContact({fields => 'lastName', filter => "id = $id"});
# The class validates a request by the schemas of the document, before it sends it.
my $invalid = $client->createCrmContact({body => {data => {firstName => [1]}}});
my $unknown = $client->createCrmContact({body => {data => {fristName => 'Grace'}}});
my $removed = $client->removeCrmContact({id => $id, version => 1});
my $missing = $client->readCrmContact({id => $id});

say encode_json({
  created => $record,
  read => $read->res->json->{data}[0],
  updated => $updated->res->json->{data}[0]{version},
  conflict => {status => 0 + $conflict->res->code, %{$conflict->res->json->{data}}},
  found => $found->res->json->{data},
  invalid => $invalid->res->json->{errors}[0]{path},
  unknown => $unknown->res->json->{errors}[0]{message},
  removed => $removed->res->json->{data},
  missing => 0 + $missing->res->code,
});
